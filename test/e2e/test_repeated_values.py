"""Tests of values, expensive and cheap ones, that windows, resizes, slices and broadcasts read several times."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, relative_error, tolerance
from tilewright.runtime.inputs import random_inputs

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.narrow import to_narrow

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

_CHANNELS, _HEIGHT, _WIDTH = 5, 13, 19
_IMAGE = [2, _CHANNELS, _HEIGHT, _WIDTH]


def _silu(g: GraphBuilder, x: str) -> str:
    return g.op("Mul", x, g.op("Sigmoid", x))


def _relu(g: GraphBuilder, x: str) -> str:
    return g.op("Relu", x)


def _convolution(g: GraphBuilder, x: str) -> tuple[str, list[int]]:
    weights = g.weight([7, _CHANNELS, 3, 3], fan_in=9 * _CHANNELS)
    y = g.op("Conv", x, weights, g.vector(7), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return y, [2, 7, _HEIGHT, _WIDTH]


def _pool(g: GraphBuilder, x: str) -> tuple[str, list[int]]:
    return g.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), _IMAGE


def _resize(g: GraphBuilder, x: str) -> tuple[str, list[int]]:
    shape = [2, _CHANNELS, 2 * _HEIGHT, 2 * _WIDTH]
    larger = g.op(
        "Resize",
        x,
        "",
        "",
        g.ints(shape),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    return g.op("Mul", larger, g.input("scale", shape)), shape


def _slices(g: GraphBuilder, x: str) -> tuple[str, list[int]]:
    def columns(first: int) -> str:
        return g.op("Slice", x, *(g.ints([value]) for value in (first, first + _WIDTH - 2, 3)))

    total = g.op("Add", g.op("Add", columns(0), columns(1)), columns(2))
    return total, [2, _CHANNELS, _HEIGHT, _WIDTH - 2]


def _broadcast(g: GraphBuilder, x: str) -> tuple[str, list[int]]:
    return g.op("Add", x, g.input("batches", [3, 2, _CHANNELS, _HEIGHT, _WIDTH])), [3, *_IMAGE]


_Operation = Callable[[GraphBuilder, str], str]
_Reading = Callable[[GraphBuilder, str], tuple[str, list[int]]]


def _model(operation: _Operation, reading: _Reading) -> onnx.ModelProto:
    g = GraphBuilder("repeated")
    g.output(*reading(g, operation(g, g.input("x", _IMAGE))))
    return g.build()


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("reading", [_convolution, _pool, _resize, _slices, _broadcast])
@pytest.mark.parametrize("operation", [_silu, _relu])
def test_what_is_read_several_times_is_right(operation: _Operation, reading: _Reading, dtype: str) -> None:
    model = _model(operation, reading)
    if dtype == "f16":
        model = to_narrow(model, dtype)
    program = tilewright.compile(model, threads=[2])
    arrays = random_inputs(program.signature, seed=11)
    (expected,) = float64_reference(model, arrays)
    (actual,) = program(*arrays)
    assert relative_error(actual, expected) <= tolerance(actual.dtype)
