"""Tests that contractions with a common input become one kernel, with the same bits as in kernels of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
import tilewright
from iree import runtime
from onnx import TensorProto
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads.builder import GraphBuilder, rotary_tables, rotate

pytestmark = pytest.mark.cpu_levels

_DEPTH = 65


@dataclass(frozen=True, kw_only=True)
class Part:
    """The input x times a weight of its own, and the following op."""

    columns: int
    heads: int = 1
    bias: bool = False
    then: str = ""
    """"transpose": heads before columns, with rows innermost, as for keys; "rotate": rotary embedding by position."""

    def add(self, g: GraphBuilder, x: str, rows: int) -> str:
        y = g.op("MatMul", x, g.weight((_DEPTH, self.columns), fan_in=_DEPTH))
        if self.bias:
            y = g.op("Add", y, g.vector(self.columns))
        if self.heads > 1:
            width = self.columns // self.heads
            y = g.op("Reshape", y, g.ints([rows, self.heads, width]))
            y = g.op("Transpose", y, perm=[1, 2, 0] if self.then == "transpose" else [1, 0, 2])
            if self.then == "rotate":
                tables = rotary_tables(g, sequence=rows, head_size=width, rank=3)
                y = rotate(g, y, *tables, head_size=width, axis=2)
        return y

    def shape(self, rows: int) -> list[int]:
        if self.heads == 1:
            return [rows, self.columns]
        width = self.columns // self.heads
        return [self.heads, width, rows] if self.then == "transpose" else [self.heads, rows, width]


def _model(parts: Sequence[Part], rows: int, *, only: int | None = None) -> onnx.ModelProto:
    """Builds a model with all parts, or with one of them and the weights that it has among all."""
    g = GraphBuilder("parts")
    x = g.input("x", (rows, _DEPTH))
    made = [part.add(g, x, rows) for part in parts]
    for i, (part, y) in enumerate(zip(parts, made, strict=True)):
        if only in (None, i):
            g.output(y, part.shape(rows))
    return g.build()


_ATTENTION = [
    Part(columns=192, heads=3, bias=True),
    Part(columns=192, heads=3, bias=True, then="transpose"),
    Part(columns=192, heads=3, bias=True),
]
_GROUPED = [
    Part(columns=512, heads=8, then="rotate"),
    Part(columns=128, heads=2, then="rotate"),
    Part(columns=128, heads=2),
]
_CASES = {
    "attention": _ATTENTION,
    "grouped": _GROUPED,
    "no-heads": [Part(columns=70, bias=True), Part(columns=70, bias=True)],
    "one-bias": [Part(columns=70, bias=True), Part(columns=70)],
    "narrow-heads": [Part(columns=60, heads=6), Part(columns=60, heads=6)],
    "unequal": [Part(columns=192), Part(columns=64)],
    # With two or three columns it would be a reduction, whose order depends on its kernel.
    "apart": [Part(columns=700), Part(columns=5)],
}


@pytest.mark.parametrize(
    ("case", "rows"),
    [*((case, 7) for case in _CASES), ("attention", 1), ("attention", 131), ("grouped", 131)],
)
def test_parts_are_bit_for_bit_what_they_are_alone(case: str, rows: int) -> None:
    """This compares the last part, whose position differs most from that in a kernel of its own; all parts are
    compared with float64."""
    parts = _CASES[case]
    model = _model(parts, rows)
    x = np.random.default_rng(rows).standard_normal((rows, _DEPTH)).astype(np.float32)
    outputs = tilewright.compile(model, threads=[2])(x)
    for output, exact in zip(outputs, float64_reference(model, [x]), strict=True):
        np.testing.assert_allclose(output, exact, rtol=1e-5, atol=1e-5)
    (alone,) = tilewright.compile(_model(parts, rows, only=len(parts) - 1), threads=[2])(x)
    np.testing.assert_array_equal(outputs[-1], alone)


def _names(program: tilewright.Program) -> list[str]:
    index = runtime.ParameterIndex()
    index.load(str(program.parameter_paths["model"]))
    return [name for name, _ in index.items()]


@pytest.mark.cpu_levels("cpu")
def test_attention_is_one_kernel_with_one_weight() -> None:
    """The kernel has three outputs, and its weights are one parameter, which is packed when the program is
    compiled."""
    program = tilewright.compile(_model(_ATTENTION, 32), "x86-64-avx512", threads=[2])
    (kernel,) = program.kernels
    assert [op.micro_kernel for op in kernel.ops if op.micro_kernel] == ["fma-6x4"]
    (weight,) = [name for name in _names(program) if name.startswith("weight")]
    assert weight.endswith(f"/packed-3x3x1x{_DEPTH}x64")
    laid_out = [op for op in program.metadata.report.left_to_iree if "matmul" in op.location]
    assert laid_out and all("at compile time, in the parameter file" in op.reason for op in laid_out)
    assert "lays a weight out for its kernel" in program.explain(verbose=True)


def test_gate_and_up_share_a_kernel() -> None:
    """The kernel computes both halves of a gated MLP, and the product that follows."""
    g = GraphBuilder("gated")
    x = g.input("x", (37, _DEPTH))
    gate, up = (g.op("MatMul", x, g.weight((_DEPTH, 128), fan_in=_DEPTH)) for _ in range(2))
    g.output(g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up), (37, 128))
    model = g.build()
    program = tilewright.compile(model, threads=[2])
    assert len(program.kernels) == 1
    value = np.random.default_rng(2).standard_normal((37, _DEPTH)).astype(np.float32)
    (exact,) = float64_reference(model, [value])
    np.testing.assert_allclose(program(value)[0], exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("numerics", ["default", "strict"])
@pytest.mark.parametrize("columns", [(128, 128, 128), (256, 64, 64), (75, 75)])
def test_bf16_is_within_one_rounding(columns: tuple[int, ...], numerics: str) -> None:
    bf16 = onnx.helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    rng = np.random.default_rng(5)
    left = rng.standard_normal((13, _DEPTH)).astype(bf16)
    weights = [rng.standard_normal((_DEPTH, n)).astype(bf16) for n in columns]
    g = GraphBuilder("narrow")
    x = g.input("x", left.shape, TensorProto.BFLOAT16)
    for weight in weights:
        g.output(g.op("MatMul", x, g.constant(weight)), (13, weight.shape[1]), TensorProto.BFLOAT16)
    program = tilewright.compile(g.build(), threads=[2], numerics=numerics)
    # Where launches are cheap, a second kernel may copy the columns of each product.
    assert sum(kernel.name.startswith("contract") for kernel in program.kernels) == 1
    for output, weight in zip(program(left), weights, strict=True):
        exact = left.astype(np.float64) @ weight.astype(np.float64)
        np.testing.assert_allclose(output.astype(np.float64), exact, rtol=2.0**-8 + 1e-4, atol=1e-4)
