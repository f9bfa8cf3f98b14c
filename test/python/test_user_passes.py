"""Passes of the user at the stages of a compilation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright import (
    CompileError,
    CompileTimeoutError,
    IrError,
    PassError,
    PythonPassError,
    ir,
    keep_compilers,
)
from tilewright.dialects import arith, tile

MODEL = """
func.func @main(%x: tensor<33x65xf32>) -> tensor<33x65xf32> {
  %zero = arith.constant 0.0 : f32
  %all = tensor.empty() : tensor<33x65xf32>
  %row = tensor.empty() : tensor<33xf32>
  %start = linalg.fill ins(%zero : f32) outs(%row : tensor<33xf32>) -> tensor<33xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<33x65xf32>) outs(%start : tensor<33xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %o, %a : f32
    linalg.yield %n : f32
  } -> tensor<33xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<33x65xf32>, tensor<33xf32>) outs(%all : tensor<33x65xf32>) {
  ^bb0(%a: f32, %t: f32, %o: f32):
    %two = arith.constant 2.0 : f32
    %p = math.powf %a, %two : f32
    %d = arith.addf %p, %t : f32
    linalg.yield %d : f32
  } -> tensor<33x65xf32>
  return %y : tensor<33x65xf32>
}
"""

X = np.random.default_rng(40).standard_normal((33, 65)).astype(np.float32)
EXPECTED = X.astype(np.float64) ** 2 + X.astype(np.float64).sum(1, keepdims=True)


def check(program: tilewright.Program) -> None:
    """The sums of 65 numbers near 1 have errors of at most 65 roundings of f32 of partial sums below 40."""
    (y,) = program(X)
    np.testing.assert_allclose(y, EXPECTED, rtol=0, atol=65 * 40 * 2**-24)


@ir.pattern("math.powf")
def as_product(op: Any) -> bool:
    op.replace(arith.mulf(op.lhs, op.lhs))
    return True


class Squares:
    """A pass that rewrites powers and remembers how many it saw."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, op: ir.OpView) -> None:
        self.seen += len(list(op.walk("math.powf")))
        ir.apply_patterns(op, [as_product])


@pytest.mark.parametrize("stage", ["normalized", "planned"])
def test_a_pattern_rewrites_a_stage_and_the_program_is_right(stage: Any) -> None:
    squares, left = Squares(), []
    program = tilewright.compile(
        MODEL,
        threads=1,
        passes={stage: [squares], "programs": [lambda op: left.extend(op.walk("math.powf"))]},
    )
    check(program)
    assert squares.seen == 1
    assert left == []
    assert f"passes of the caller ran on the {stage} module: Squares" in program.metadata.notes


def test_an_expression_built_in_python_is_planned_and_computed() -> None:
    def build(op: ir.OpView) -> None:
        for generic in list(op.walk("linalg.generic")):
            if not list(generic.walk("math.powf")):
                continue
            x, sums = generic.operands[0], generic.operands[1]
            identity = generic.attributes["indexing_maps"][0].value
            rows = generic.attributes["indexing_maps"][1].value
            with ir.InsertionPoint(generic):
                made = tile.tensor_expr(
                    [generic.result.type],
                    [x, sums],
                    lambda a, t: arith.addf(arith.mulf(a, a), t),
                    domain=x.type.shape,
                    maps=[identity, rows],
                    result_maps=[identity],
                    loc=generic.location,
                )
            generic.replace(made)

    program = tilewright.compile(MODEL, threads=1, passes={"normalized": [build]})
    check(program)
    assert program.metadata.report.kernels


def test_a_tile_changed_in_the_plan_is_the_tile_of_the_program() -> None:
    tiles: list[list[int]] = []

    def shrink(op: ir.OpView) -> None:
        for each in op.walk("tile.subprogram"):
            group: Any = ir.view(each)
            group.tiles = ir.DenseI64ArrayAttr.get([3, 65])

    def read(op: ir.OpView) -> None:
        tiles.extend(each.attributes["tiles"].value for each in op.walk("tile.parallel"))

    check(tilewright.compile(MODEL, threads=1, passes={"planned": [shrink], "programs": [read]}))
    assert tiles == [[3]]


def test_textual_passes_run_beside_those_in_python() -> None:
    order: list[str] = []
    check(
        tilewright.compile(
            MODEL,
            threads=1,
            passes={
                "planned": [lambda op: order.append("first"), "func.func(cse)", Squares(), "canonicalize"]
            },
        )
    )
    assert order == ["first"]


def test_an_exception_in_a_pass_ends_the_compilation_with_its_name_and_cause() -> None:
    def fails(_op: ir.OpView) -> None:
        raise LookupError("nothing here")

    with pytest.raises(PythonPassError, match="pass 'fails' raised LookupError: nothing here") as raised:
        tilewright.compile(MODEL, passes={"planned": [fails]})
    assert raised.value.pass_name == "fails"
    assert isinstance(raised.value.__cause__, LookupError)


def test_a_pass_that_leaves_invalid_ir_ends_the_compilation() -> None:
    def widens(op: ir.OpView) -> None:
        group: Any = ir.view(next(op.walk("tile.subprogram")))
        group.tiles = ir.DenseI64ArrayAttr.get([99, 65])

    with pytest.raises(PythonPassError, match=r"pass 'widens' left invalid IR: 'tile.subprogram' op S3"):
        tilewright.compile(MODEL, passes={"planned": [widens]})


def test_a_plan_that_a_pass_makes_illegal_is_refused_and_not_worked_around() -> None:
    def hands_over_in_registers(op: ir.OpView) -> None:
        connect: Any = ir.view(next(op.walk("tile.connect")))
        connect.scope = ir.Attribute.parse(f"#tile.scope<{tile.Scope.thread}>")

    with pytest.raises(PassError) as raised:
        tilewright.compile(MODEL, passes={"planned": [hands_over_in_registers]})
    assert raised.value.operation == "tile.connect" or "scope" in raised.value.message


def test_text_that_is_no_pipeline_is_refused_in_one_line() -> None:
    with pytest.raises(CompileError, match=r"the pass 'no-such-pass' failed: .*no-such-pass") as raised:
        tilewright.compile(MODEL, passes={"normalized": ["no-such-pass"]})
    assert "\n" not in str(raised.value)


def test_an_unknown_stage_is_refused_with_those_there_are() -> None:
    with pytest.raises(CompileError, match="normalized, planned, programs"):
        tilewright.compile(MODEL, passes={"lowered": []})  # type: ignore[dict-item]


def test_a_pass_that_outlasts_the_timeout_ends_with_it() -> None:
    with pytest.raises(CompileTimeoutError):
        tilewright.compile(MODEL, passes={"planned": [lambda op: time.sleep(8)]}, timeout=6)


def test_operations_of_a_pass_are_gone_after_the_compilation() -> None:
    kept: list[ir.OpView] = []
    tilewright.compile(MODEL, threads=1, passes={"planned": [kept.append]})
    with pytest.raises(IrError, match="no longer exists"):
        kept[0].regions  # noqa: B018 - the access raises


def test_kept_compilers_compile_with_and_without_passes() -> None:
    squares = Squares()
    with keep_compilers():
        check(tilewright.compile(MODEL, threads=1, passes={"planned": [squares]}))
        program = tilewright.compile(MODEL, threads=1)
    check(program)
    assert squares.seen == 1
    assert not program.metadata.notes


def test_passes_run_on_modules_for_a_gpu(tmp_path: Path) -> None:
    squares = Squares()
    tilewright.compile(MODEL, "cuda:h200", passes={"planned": [squares]}, dump_dir=tmp_path)
    assert squares.seen == 1
    assert (
        "mul.rn.f32" in (tmp_path / "kernels.ptx").read_text()
        or "fma.rn.f32" in (tmp_path / "kernels.ptx").read_text()
    )
