"""Passes written in Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ir_modules import NEGATIONS, PLANNED, double_negation, names
from tilewright import IrError, Module, PassError, PythonPassError, ir
from tilewright.dialects import math as math_ops


@pytest.fixture
def module() -> Module:
    return Module.parse(NEGATIONS)


@pytest.fixture
def planned() -> Module:
    return Module.parse(PLANNED, name="planned.mlir")


@pytest.fixture
def register() -> Iterator[Callable[..., ir.Pass]]:
    """Registers a pass under a name of this test's own; MLIR cannot forget passes."""

    def make(function: Callable[[Any], object], *, on: str = "builtin.module") -> ir.Pass:
        return ir.python_pass(f"test-{function.__name__.replace('_', '-')}", on=on)(function)

    yield make


# A pass in Python stands beside passes in C++ in one pipeline.
def test_a_pass_joins_a_textual_pipeline(module: Module, register: Callable[..., ir.Pass]) -> None:
    def fold_negations(op: ir.OpView) -> None:
        ir.apply_patterns(op, [double_negation])

    register(fold_negations, on="func.func")
    module.run("builtin.module(func.func(test-fold-negations,cse),canonicalize)")
    assert "arith.negf" not in names(module.operation)


# Passes on functions run once for each, although MLIR runs them in several threads.
def test_a_pass_runs_on_every_operation_that_it_is_anchored_on(register: Callable[..., ir.Pass]) -> None:
    functions = Module.parse("".join(NEGATIONS.replace("@", f"@f{i}_") for i in range(20)))
    seen: list[str] = []

    def collect_names(op: Any) -> None:
        seen.append(op.sym_name.value)
        with ir.InsertionPoint.at_block_begin(op.regions[0][0]):
            math_ops.exp(op.regions[0][0].arguments[0])  # of a dialect that the module has not used

    functions.run(register(collect_names, on="func.func"))
    assert sorted(seen) == sorted(f"f{i}_twice_negated" for i in range(20))
    assert names(functions.operation).count("math.exp") == 20


# In a pipeline of many passes, the error says which one raised, and keeps the cause.
def test_an_exception_in_a_pass_names_the_pass(module: Module, register: Callable[..., ir.Pass]) -> None:
    def divides_by_zero(_op: ir.OpView) -> None:
        raise ZeroDivisionError("no")

    register(divides_by_zero)
    with pytest.raises(
        PythonPassError, match="pass 'test-divides-by-zero' raised ZeroDivisionError: no"
    ) as raised:
        module.run("builtin.module(canonicalize,test-divides-by-zero)")
    assert raised.value.pass_name == "test-divides-by-zero"
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def breaks_a_tile(op: ir.OpView) -> None:
    """Leaves invalid IR."""
    group: Any = ir.view(next(op.walk("tile.subprogram")))
    with op.context:
        group.tiles = ir.DenseI64ArrayAttr.get([9, 7])


# Invalid IR is found behind the pass that left it, and not in a later one.
def test_a_pass_that_leaves_invalid_ir_is_named(planned: Module, register: Callable[..., ir.Pass]) -> None:
    with pytest.raises(PythonPassError, match=r"pass 'test-breaks-a-tile' left invalid IR: .* S3") as raised:
        planned.run(register(breaks_a_tile))
    assert raised.value.operation == "tile.subprogram"
    assert raised.value.location is not None and raised.value.location.startswith("planned.mlir:3")


# Without a verifier behind each pass, invalid IR does not leave the phase.
def test_a_phase_ends_with_the_verifier(planned: Module, register: Callable[..., ir.Pass]) -> None:
    register(breaks_a_tile)
    phase = "builtin.module(tilewright-cpu-normalize{target=x86-64-avx2 at-normalized=test-breaks-a-tile})"
    with pytest.raises(PassError, match="S3"):
        planned.run_unrecorded(phase, verify_each=False)


# The module is locked while a pass runs; using it from inside would wait for itself.
def test_a_pass_uses_its_operation_and_not_the_module(
    module: Module, register: Callable[..., ir.Pass]
) -> None:
    def prints_the_module(_op: ir.OpView) -> None:
        module.to_text()

    with pytest.raises(PythonPassError, match="cannot use the module that it runs on"):
        module.run(register(prints_the_module))


# In a notebook a cell is run again, and the new function counts.
def test_a_pass_can_be_defined_again(module: Module) -> None:
    seen: list[str] = []
    ir.python_pass("test-again")(lambda op: seen.append("first"))
    again = ir.python_pass("test-again", on="func.func")(lambda op: seen.append(op.name))
    module.run(again)
    module.run("builtin.module(func.func(test-again))")
    assert seen == ["func.func", "func.func"]


# A name has one meaning in pipelines.
def test_the_name_of_a_pass_in_cpp_is_taken() -> None:
    with pytest.raises(IrError, match="named 'canonicalize' already"):
        ir.python_pass("canonicalize")(lambda op: None)
    with pytest.raises(IrError, match="not a name for a pass"):
        ir.python_pass("a,b")(lambda op: None)


# MLIR's own check of anchors holds for passes in Python.
def test_a_pass_on_another_operation_is_refused_by_the_pipeline(
    module: Module, register: Callable[..., ir.Pass]
) -> None:
    def only_on_functions(_op: ir.OpView) -> None: ...

    register(only_on_functions, on="func.func")
    with pytest.raises(PassError, match=r"func\.func"):
        module.run("builtin.module(test-only-on-functions)")


# Several threads may each run passes on a module of their own.
def test_threads_use_modules_of_their_own(register: Callable[..., ir.Pass]) -> None:
    def folds_in_threads(op: ir.OpView) -> None:
        ir.apply_patterns(op, [double_negation])

    fold = register(folds_in_threads)
    left: list[int] = []

    def work() -> None:
        for _ in range(10):
            mine = Module.parse(NEGATIONS)
            mine.run(fold)
            left.append(names(mine.operation).count("arith.negf"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert left == [0] * 40
