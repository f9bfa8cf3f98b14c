"""Tests of two matmuls with a function between them, in one kernel if that is predicted to be faster: numbers, and
both predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.cpu_levels


@dataclass(frozen=True, kw_only=True)
class Mlp:
    """A model of function(x @ w1) @ w2, or (function(x @ w1) * (x @ w3)) @ w2 if it is gated."""

    rows: int
    inner: int
    hidden: int
    columns: int
    function: str
    gated: bool = False
    batch: tuple[int, ...] = ()
    given: bool = False
    """True if the matrices are inputs instead of weights."""
    dtype: int = TensorProto.FLOAT

    def values(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(11)
        shapes = {"w1": (self.inner, self.hidden), "w2": (self.hidden, self.columns)}
        if self.gated:
            shapes["w3"] = (self.inner, self.hidden)
        batch = self.batch if self.given else ()
        narrow = onnx.helper.tensor_dtype_to_np_dtype(self.dtype)
        values = {"x": rng.standard_normal((*self.batch, self.rows, self.inner))}
        for name, shape in shapes.items():
            values[name] = rng.standard_normal((*batch, *shape)) / np.sqrt(shape[0])
        return {name: value.astype(narrow) for name, value in values.items()}

    def build(self) -> onnx.ModelProto:
        g = GraphBuilder("mlp")
        values = self.values()
        names = {
            name: g.input(name, value.shape, self.dtype) if self.given or name == "x" else g.constant(value)
            for name, value in values.items()
        }
        x = g.op("MatMul", names["x"], names["w1"])
        x = g.op("Mul", x, g.op("Sigmoid", x)) if self.function == "silu" else g.op(self.function, x)
        if self.gated:
            x = g.op("Mul", x, g.op("MatMul", names["x"], names["w3"]))
        g.output(g.op("MatMul", x, names["w2"]), (*self.batch, self.rows, self.columns), self.dtype)
        return g.build()

    def reference(self) -> np.ndarray:
        """Computes the result in float64, without any narrower rounding."""
        v = {name: value.astype(np.float64) for name, value in self.values().items()}
        y = v["x"] @ v["w1"]
        y = {"silu": y / (1 + np.exp(-y)), "Relu": np.maximum(y, 0), "Tanh": np.tanh(y)}[self.function]
        return np.asarray((y * (v["x"] @ v["w3"]) if self.gated else y) @ v["w2"])

    def check(self, target: str = "cpu") -> tilewright.Program:
        program = tilewright.compile(self.build(), target, threads=[2], tuning=False)
        values = self.values()
        (got,) = program(*(values[spec.name] for spec in program.signature.inputs))
        # Each product has a rounding of its stored operand; in f32 the roundings of long sums dominate.
        step = {TensorProto.FLOAT: 2.0**-20, TensorProto.FLOAT16: 2.0**-10, TensorProto.BFLOAT16: 2.0**-7}[
            self.dtype
        ]
        expected = self.reference()
        np.testing.assert_allclose(
            got.astype(np.float64), expected, rtol=2 * step, atol=4 * step * np.abs(expected).max()
        )
        return program


@pytest.mark.parametrize(
    "mlp",
    [
        Mlp(rows=37, inner=19, hidden=53, columns=11, function="Tanh"),
        Mlp(rows=37, inner=19, hidden=53, columns=75, function="silu", gated=True),
        Mlp(rows=13, inner=65, hidden=7, columns=130, function="Relu", given=True),
        Mlp(rows=29, inner=33, hidden=70, columns=18, function="silu", gated=True, batch=(3,), given=True),
        Mlp(rows=7, inner=20, hidden=67, columns=33, function="Tanh", batch=(2, 3)),
    ],
    ids=str,
)
def test_odd_sizes_are_one_kernel(mlp: Mlp) -> None:
    assert len(mlp.check().kernels) == 1


@pytest.mark.parametrize("dtype", [TensorProto.BFLOAT16, TensorProto.FLOAT16], ids=["bf16", "f16"])
@pytest.mark.parametrize("gated", [True, False], ids=["gated", "plain"])
def test_narrow_types(dtype: int, *, gated: bool) -> None:
    mlp = Mlp(rows=21, inner=70, hidden=130, columns=35, function="silu", gated=gated, dtype=dtype)
    assert len(mlp.check().kernels) == 1


@pytest.mark.cpu_levels("cpu")
def test_explain_shows_what_was_decided_on() -> None:
    """The report shows the predicted time of one kernel and of several, and for each its traffic and its bound."""
    fused = Mlp(rows=64, inner=64, hidden=256, columns=64, function="Relu").check("x86-64-avx2")
    (kernel,) = fused.kernels
    terms = {term.name: term.value for term in kernel.predicted}
    assert 0 < terms["seconds"] < 1.1 * terms["a kernel for each contraction"]
    (part,) = kernel.groups
    assert [level.level for level in part.movement] == ["L1", "L2", "L3"]
    assert all(level.bytes >= level.least_bytes > 0 for level in part.movement)
    assert sorted(part.order) == list(range(len(part.dims)))
    assert kernel.bound == "arithmetic"
    assert "bound by arithmetic" in fused.explain()
    assert "MB past L1 (least of any order" in fused.explain()

    # A tile holds few rows of 2048 hidden elements, and each tile reads all weights again.
    apart = Mlp(rows=64, inner=512, hidden=2048, columns=512, function="Relu").check("x86-64-avx2")
    assert len(apart.kernels) == 2
    assert "one kernel is predicted slower" in apart.explain()
