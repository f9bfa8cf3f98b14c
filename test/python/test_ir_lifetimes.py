"""IR as Python objects: an object whose operation is gone says so."""

from __future__ import annotations

import gc

import pytest
from ir_modules import NEGATIONS, PLANNED, first, names
from tilewright import IrError, Module, ir


@pytest.fixture
def module() -> Module:
    return Module.parse(NEGATIONS)


# Attributes, types and blocks keep the memory that they are in, whatever is deleted first.
def test_objects_outlive_their_module() -> None:
    operation = Module.parse(PLANNED).operation
    exprs = list(operation.walk("tile.expr"))
    kept = exprs[0].attributes["domain"], exprs[0].result.type, exprs[0].regions[0][0]
    del operation, exprs
    gc.collect()
    domain, kind, block = kept
    assert (domain.value, str(kind), len(block.operations)) == ([5, 7], "tensor<5xf32>", 2)


# Every use of an erased operation, or of what was inside it, is an error and no crash.
def test_an_erased_operation_raises(module: Module) -> None:
    function = first(module, "func.func").operation
    add = first(module, "arith.addf").operation
    value, block = add.result, add.block
    function.erase()
    assert not add.is_valid
    for use in (
        lambda: add.name,
        lambda: add.attributes["x"],
        lambda: value.type,
        lambda: block.operations,
        lambda: function.regions,
        lambda: str(add),
        lambda: ir.InsertionPoint(add),
    ):
        with pytest.raises(IrError, match="no longer exists"):
            use()
    assert repr(add) == "<operation that is gone or in use>"


# A pass may replace any operation, so handles from before it are refused.
def test_operations_from_before_a_pass_raise(module: Module) -> None:
    add = first(module, "arith.addf").operation
    top = module.operation
    module.run("builtin.module(func.func(canonicalize))")
    with pytest.raises(IrError, match="no longer exists"):
        add.erase()
    assert names(top)[:2] == ["builtin.module", "func.func"]  # the module itself stays


# Taking over a body frees the old one, and its handles know.
def test_operations_from_before_a_replaced_body_raise(module: Module) -> None:
    block = module.operation.regions[0][0]
    with module.context:
        other = ir.Operation.parse(f"builtin.module {{ {PLANNED} }}")
    module.operation.regions[0].take_body(other.regions[0])
    with pytest.raises(IrError, match="block no longer exists"):
        block.operations  # noqa: B018 - the access raises
    module.verify()
    assert "tile.subprogram" in names(module.operation)


# Operations outside a module belong to Python, which frees them.
def test_an_operation_that_is_never_placed_is_destroyed_with_its_handle() -> None:
    with ir.Context():
        kept = ir.Operation.create("test.outer", results=[], regions=1)
        with ir.InsertionPoint(kept.regions[0].append_block()):
            inner = ir.Operation.create("test.inner", results=[])
    del kept
    gc.collect()
    with pytest.raises(IrError, match="no longer exists"):
        inner.name  # noqa: B018 - the access raises
