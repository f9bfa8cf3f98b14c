"""Tests that the graph's own algebra is kept where ours would go wrong: exponents above zero, sums with another
initial value, parts that are not adjacent."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, relative_error, tolerance

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.cpu_levels

Array = np.ndarray[Any, Any]
_COLUMNS = 777


def _check(model: onnx.ModelProto, *inputs: Array) -> None:
    outputs = tilewright.compile(model, threads=1, strict=True)(*inputs)
    for actual, expected in zip(outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(actual, expected) <= tolerance(np.float32)


def _exponentials(*, of: str) -> onnx.ModelProto:
    """Computes the sum of exp(f(x) - max x)."""
    g = GraphBuilder("exponentials")
    x = g.input("x", [3, _COLUMNS])
    largest = g.op("ReduceMax", x, axes=[-1], keepdims=1)
    e = g.op("Exp", g.op("Sub", g.op(of, x), largest))
    g.output(g.op("ReduceSum", e, g.ints([-1]), keepdims=1), [3, 1])
    return g.build()


@pytest.mark.parametrize("of", ["Abs", "Neg", "Identity"])
def test_exponents_may_be_above_zero(of: str) -> None:
    x = np.where(np.arange(3 * _COLUMNS).reshape(3, -1) % _COLUMNS < 400, -60, 12).astype(np.float32)
    _check(_exponentials(of=of), x)


def test_maximum_that_one_nest_alone_reads() -> None:
    g = GraphBuilder("pooled")
    x, w = g.input("x", [3, _COLUMNS]), g.input("w", [3, _COLUMNS])
    e = g.op("Exp", g.op("Sub", x, g.op("ReduceMax", x, axes=[-1], keepdims=1)))
    weighted = g.op("ReduceSum", g.op("Mul", e, w), g.ints([-1]), keepdims=1)
    g.output(g.op("Div", weighted, g.op("ReduceSum", e, g.ints([-1]), keepdims=1)), [3, 1])
    rng = np.random.default_rng(0)
    _check(g.build(), *(rng.standard_normal((3, _COLUMNS)).astype(np.float32) for _ in range(2)))


@pytest.mark.parametrize(("exponent", "scale"), [(82.0, 100.0), (-80.0, 1e-3)])
def test_softmax_without_a_maximum_before_a_matmul(exponent: float, scale: float) -> None:
    g = GraphBuilder("naive")
    x, v = g.input("x", [64, 128]), g.input("v", [128, 32])
    e = g.op("Exp", x)
    g.output(g.op("MatMul", g.op("Div", e, g.op("ReduceSum", e, g.ints([-1]), keepdims=1)), v), [64, 32])
    values = scale * (1 + np.random.default_rng(0).random((128, 32), np.float32))
    _check(g.build(), np.full((64, 128), exponent, np.float32), values.astype(np.float32))


def test_steps_of_other_shapes_stay_apart() -> None:
    g = GraphBuilder("shapes")
    x = g.input("x", [8, 64])
    rng = np.random.default_rng(1)
    for repeated in (2, 3):
        product = g.op("MatMul", x, g.weight((64, 64), fan_in=64))
        added = g.constant(rng.standard_normal((repeated, 1, 64)).astype(np.float32))
        g.output(g.op("Relu", g.op("Add", product, added)), [repeated, 8, 64])
    _check(g.build(), rng.standard_normal((8, 64)).astype(np.float32))
