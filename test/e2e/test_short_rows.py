"""Tests of rows that are shorter than vectors: several lie side by side in the lanes, or a plane of them becomes one
row; the numbers stay right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import tilewright
from onnx import ModelProto
from tilewright.reference.oracle import (
    float64_reference,
    model_tolerance,
    random_inputs,
    relative_error,
)

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.narrow import to_narrow

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


def _softmax(shape: Sequence[int]) -> ModelProto:
    """Computes a plain softmax, then a sum of the same rows, and reads the rows again."""
    g = GraphBuilder("softmax")
    x = g.input("x", shape)
    y = g.op("Softmax", g.op("Tanh", x), axis=len(shape) - 1)
    g.output(y, shape)
    total = g.op("ReduceSum", g.op("Exp", g.op("Mul", x, y)), g.ints([len(shape) - 1]), keepdims=1)
    g.output(total, [*shape[:-1], 1])
    g.output(g.op("Div", g.op("Sigmoid", x), total), shape)
    return g.build()


def _planes(shape: Sequence[int]) -> ModelProto:
    """Reduces a whole plane: as a maximum, which IREE's importer takes dim by dim, and as a mean."""
    g = GraphBuilder("planes")
    x = g.input("x", shape)
    axes = [len(shape) - 2, len(shape) - 1]
    kept = [*shape[:-2], 1, 1]
    largest = g.op("ReduceMax", x, axes=axes, keepdims=1)
    shifted = g.op("Exp", g.op("Sub", x, largest))
    mean = g.op("ReduceMean", shifted, axes=axes, keepdims=1)
    g.output(g.op("Div", shifted, mean), shape)
    g.output(mean, kept)
    g.output(g.op("ReduceMin", g.op("Abs", x), axes=axes, keepdims=1), kept)
    return g.build()


def _biased(shape: Sequence[int], bias: Sequence[int]) -> ModelProto:
    """Adds a bias that repeats over rows, or changes between them, to planes; sums run across the rows."""
    g = GraphBuilder("biased")
    x = g.input("x", shape)
    y = g.op("Exp", g.op("Tanh", g.op("Add", x, g.input("bias", bias))))
    total = g.op("ReduceSum", y, g.ints([1]), keepdims=1)
    g.output(g.op("Div", g.op("Add", y, g.op("Sigmoid", x)), total), shape)
    return g.build()


def _columns(shape: Sequence[int]) -> ModelProto:
    """Computes batch statistics: root and divisor of a column are the same for all its rows."""
    g = GraphBuilder("columns")
    x = g.input("x", shape)
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[0], keepdims=1))
    variance = g.op("ReduceMean", g.op("Mul", centred, centred), axes=[0], keepdims=1)
    g.output(variance, [1, *shape[1:]])
    g.output(g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.scalar(1e-5)))), shape)
    return g.build()


def _errors(model: ModelProto, seed: int) -> list[float]:
    program = tilewright.compile(model, threads=1)
    assert len(program.kernels) == 1
    assert not any(op.is_dispatch for op in program.metadata.report.left_to_iree)
    inputs = random_inputs(model, seed)
    outputs = program(*inputs)
    return [relative_error(y, y64) for y, y64 in zip(outputs, float64_reference(model, inputs), strict=True)]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize(
    "shape", [(65, 2), (1000, 3), (259, 5), (31, 33, 7), (2, 77, 5, 9), (129, 17), (33, 33), (16, 31)]
)
def test_reduced_rows(shape: tuple[int, ...], dtype: str) -> None:
    model = to_narrow(_softmax(shape), dtype) if dtype != "f32" else _softmax(shape)
    assert max(_errors(model, len(shape))) <= model_tolerance(model)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(65, 7, 5), (3, 70, 3, 3), (9, 65, 17), (100, 1, 3), (5, 3, 2, 2)])
def test_reduced_planes(shape: tuple[int, ...], dtype: str) -> None:
    model = to_narrow(_planes(shape), dtype) if dtype != "f32" else _planes(shape)
    assert max(_errors(model, len(shape))) <= model_tolerance(model)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("shape", "bias"),
    [
        ((5, 11, 13, 11), (11,)),
        ((3, 17, 65, 3), (65, 1)),
        ((2, 17, 5, 7), (2, 1, 5, 1)),
        ((4, 9, 33, 5), (4, 9, 1, 5)),
        ((1, 16, 7, 3, 5), (3, 1)),
    ],
)
def test_rows_that_a_bias_repeats(shape: tuple[int, ...], bias: tuple[int, ...], dtype: str) -> None:
    model = _biased(shape, bias) if dtype == "f32" else to_narrow(_biased(shape, bias), dtype)
    assert max(_errors(model, len(shape))) <= model_tolerance(model)


@pytest.mark.cpu_levels("cpu")
def test_a_bias_is_laid_out_along_planes_where_it_stays_small() -> None:
    (kernel,) = tilewright.compile(_biased((5, 11, 65, 11), (11,)), "x86-64-avx512", threads=1).kernels
    assert [part.dims for part in kernel.groups] == [(5, 11, 65 * 11)]
    (kernel,) = tilewright.compile(_biased((1, 3, 65, 11), (11,)), "x86-64-avx512", threads=1).kernels
    assert all(65 * 11 not in part.dims for part in kernel.groups)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(129, 77), (64, 205), (300, 1027), (7, 16), (2000, 33)])
def test_columns(shape: tuple[int, int], threads: int) -> None:
    """The last tile of columns is narrower than the others."""
    model = _columns(shape)
    inputs = random_inputs(model, 6)
    outputs = tilewright.compile(model, threads=threads)(*inputs)
    errors = map(relative_error, outputs, float64_reference(model, inputs))
    assert max(errors) <= model_tolerance(model)


@pytest.mark.cpu_levels("cpu")
def test_rows_lie_side_by_side_where_that_is_quicker() -> None:
    (kernel,) = tilewright.compile(_softmax((1000, 7)), "x86-64-avx512", threads=1).kernels
    assert [part.dims for part in kernel.groups] == [(7, 1000)]
    (kernel,) = tilewright.compile(_softmax((1000, 512)), "x86-64-avx512", threads=1).kernels
    assert [part.dims for part in kernel.groups] == [(1000, 512)]


def test_integers_and_places_of_maxima() -> None:
    g = GraphBuilder("argmax")
    x = g.input("x", (300, 7))
    g.output(g.op("ArgMax", g.op("Abs", x), axis=1, keepdims=0), (300,), 7)
    model = g.build()
    inputs = random_inputs(model, 4)
    (places,) = tilewright.compile(model, threads=1)(*inputs)
    np.testing.assert_array_equal(places, np.abs(inputs[0]).argmax(1))


def test_elements_repeated_in_the_tail_of_a_row() -> None:
    """A vector of three registers begins among the copies of one element and ends among those of the next."""
    g = GraphBuilder("repeated")
    x = g.input("x", (16, 16))
    for times in (12, 24, 48, 40):
        whole, length = 16 * times, 16 * times - times // 2 - 1
        copies = g.op("Expand", g.op("Unsqueeze", g.op("Neg", x), g.ints([2])), g.ints([16, 16, times]))
        row = g.op(
            "Slice", g.op("Reshape", copies, g.ints([16, whole])), g.ints([0]), g.ints([length]), g.ints([1])
        )
        g.output(g.op("Add", row, g.input(f"y{times}", (16, length))), (16, length))
    model = g.build()
    inputs = random_inputs(model, 3)
    outputs = tilewright.compile(model, threads=1)(*inputs)
    errors = map(relative_error, outputs, float64_reference(model, inputs))
    assert max(errors) <= model_tolerance(model)
