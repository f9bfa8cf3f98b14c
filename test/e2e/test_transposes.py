"""Tests of arithmetic across lanes, or on every other element: tiles are transposed in registers, and strided lanes
are shuffled."""

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


def _transposed_operand(rows: int, columns: int) -> onnx.ModelProto:
    g = GraphBuilder("transposed_operand")
    turned = g.op("Transpose", g.input("x", [rows, columns]), perm=[1, 0])
    shifted = g.op("Add", turned, g.vector(rows))
    g.output(g.op("Mul", shifted, g.input("y", [columns, rows])), [columns, rows])
    return g.build()


def _channels_last(rows: int, columns: int) -> onnx.ModelProto:
    g = GraphBuilder("channels_last")
    turned = g.op("Transpose", g.input("x", [2, columns, rows, 9]), perm=[0, 2, 3, 1])
    g.output(g.op("Relu", g.op("Add", turned, g.vector(columns))), [2, rows, 9, columns])
    return g.build()


def _heads(rows: int, columns: int) -> onnx.ModelProto:
    """Transposes keys of attention, with three heads side by side in a row."""
    g = GraphBuilder("heads")
    biased = g.op("Add", g.input("x", [rows, 3 * columns]), g.vector(3 * columns))
    split = g.op("Reshape", biased, g.ints([rows, 3, columns]))
    g.output(g.op("Transpose", split, perm=[1, 2, 0]), [3, columns, rows])
    return g.build()


def _transposed_softmax(rows: int, columns: int) -> onnx.ModelProto:
    """Computes a softmax whose result is stored across the rows that are reduced."""
    g = GraphBuilder("transposed_softmax")
    softmax = g.op("Softmax", g.input("x", [3, rows, columns]), axis=-1)
    g.output(g.op("Transpose", softmax, perm=[0, 2, 1]), [3, columns, rows])
    return g.build()


def _interleaved(rows: int, columns: int) -> onnx.ModelProto:
    """Computes a gated unit in which values and gates alternate; the last row of threes ends with the tensor."""
    g = GraphBuilder("interleaved")
    x, y = g.input("x", [rows, 2 * columns]), g.input("y", [rows, 3 * columns])
    axes = g.ints([1])
    value, gate = (g.op("Slice", x, g.ints([i]), g.ints([2 * columns]), axes, g.ints([2])) for i in range(2))
    third = g.op("Slice", y, g.ints([2]), g.ints([3 * columns]), axes, g.ints([3]))
    g.output(g.op("Add", g.op("Mul", value, g.op("Sigmoid", gate)), third), [rows, columns])
    return g.build()


@pytest.mark.parametrize("shape", [(64, 256), (1000, 523), (37, 19)])
@pytest.mark.parametrize(
    "make", [_transposed_operand, _channels_last, _transposed_softmax, _heads, _interleaved]
)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_transposes_beside_arithmetic(
    make: Callable[[int, int], onnx.ModelProto], shape: tuple[int, int], dtype: str
) -> None:
    model = make(*shape) if dtype == "f32" else to_narrow(make(*shape), "bf16")
    program = tilewright.compile(model, threads=[2], strict=True)
    assert len(program.kernels) == 1
    arrays = random_inputs(program.signature, seed=sum(shape))
    (expected,) = float64_reference(model, arrays)
    (actual,) = program(*arrays)
    assert relative_error(actual, expected) <= tolerance(actual.dtype)
