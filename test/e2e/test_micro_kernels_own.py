"""Micro kernels from outside the compiler: right results, and refusals by name."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tilewright
from micro_kernel_cases import skip_unless_here
from one_graph import one_graph
from onnx import TensorProto, helper
from tilewright.records.targets import unregister_micro_kernel

_SQUARES = """
func.func @step(%sums: vector<8xf32>, %row: vector<8xf32>, %lanes: vector<8xf32>) -> vector<8xf32> {
  %difference = arith.subf %row, %lanes : vector<8xf32>
  %next = math.fma %difference, %difference, %sums : vector<8xf32>
  return %next : vector<8xf32>
}
"""


def test_a_kernel_from_outside_computes_what_it_says() -> None:
    """It sums squared differences instead of products, which none of our kernels does, so only this one can have
    run."""
    skip_unless_here("x86-64-avx2")
    rng = np.random.default_rng(12)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((13, 21), (21, 70)))
    model = one_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a}, {"b": b}, (TensorProto.FLOAT, (13, 70))
    )
    kernel = tilewright.MicroKernel(
        name="squares",
        lhs="f32",
        rhs="f32",
        accumulator="f32",
        vector_bytes=32,
        body=_SQUARES,
        block_rows=4,
        block_vectors=2,
    )
    tilewright.register_micro_kernel(kernel)
    try:
        program = tilewright.compile(model, "x86-64-avx2", threads=1, tuning=False)
    finally:
        unregister_micro_kernel("squares")
    assert "micro kernel squares-4x2" in program.explain()
    expected = ((a[:, :, None].astype(np.float64) - b[None].astype(np.float64)) ** 2).sum(axis=1)
    np.testing.assert_allclose(program(a)[0], expected, rtol=1e-5)
    after = tilewright.compile(model, "x86-64-avx2", threads=1, tuning=False)
    np.testing.assert_allclose(after(a)[0], a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"body": "func.func @f("}, "body"),
        ({"body": _SQUARES.replace("8xf32", "4xf32")}, "expected a function of type"),
        (
            {"body": _SQUARES.replace("%next = math.fma", "func.call @f() : () -> () %next = math.fma")},
            "body",
        ),
        ({"depth": 3}, "depth: expected 1, 2 or 4"),
        ({"speed": math.nan}, "'k': speed: expected a positive number"),
        ({"speed": math.inf}, "'k': speed: expected a positive number"),
        ({"vector_bytes": 48}, "vectorBytes: expected 16, 32 or 64"),
        ({"name": "a b"}, "letters, digits"),
        ({"lhs": "i4"}, "'i4' is none of"),
        ({"features": ("avx2", "avx512bf")}, "has 'avx512bf'; did you mean 'avx512"),
        ({"block_rows": 4, "block_vectors": 3}, "power of two"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_kernel_that_is_none_is_refused(changed: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {
        "name": "k",
        "lhs": "f32",
        "rhs": "f32",
        "accumulator": "f32",
        "vector_bytes": 32,
    }
    kernel = tilewright.MicroKernel(**{**fields, "body": _SQUARES, **changed})  # type: ignore[arg-type]
    with pytest.raises(tilewright.TargetError, match=message):
        tilewright.register_micro_kernel(kernel)


@pytest.mark.parametrize(
    "instruction, constraints, message",
    [
        ("vfnord231ps", "=x,x,x,0", "invalid .*'vfnord231ps'"),
        ("vfmadd231ps", "=q,x,x,0", "couldn't allocate output register"),
        ("vfmadd231ps", "=x,x,x,9", "constraints '=x,x,x,9'"),
        ("vfmadd231ps", "bogus", "constraints 'bogus'"),
    ],
)
def test_bad_assembly_names_its_micro_kernel(instruction: str, constraints: str, message: str) -> None:
    body = f"""
    func.func @step(%sums: vector<8xf32>, %row: vector<8xf32>, %lanes: vector<8xf32>) -> vector<8xf32> {{
      %next = llvm.inline_asm "{instruction} $1, $2, $0", "{constraints}" %row, %lanes, %sums
          : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
      return %next : vector<8xf32>
    }}"""
    kernel = tilewright.MicroKernel(
        name="fnord", lhs="f32", rhs="f32", accumulator="f32", vector_bytes=32, body=body
    )
    a, b = np.ones((13, 21), np.float32), np.ones((21, 70), np.float32)
    model = one_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a}, {"b": b}, (TensorProto.FLOAT, (13, 70))
    )
    tilewright.register_micro_kernel(kernel)
    try:
        with pytest.raises(tilewright.PassError, match=f"micro kernel 'fnord': .*{message}"):
            tilewright.compile(model, "x86-64-avx2", threads=1, tuning=False)
    finally:
        unregister_micro_kernel("fnord")
