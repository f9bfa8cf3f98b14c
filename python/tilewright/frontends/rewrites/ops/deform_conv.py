"""DeformConv as a convolution of elements gathered around the moved positions of each tap.

The elements of all taps are laid beside each other, [batch, channels, taps, positions], and convolved by filters of
that many taps. Elements outside the image are zero.
"""

from __future__ import annotations

import itertools

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import UNSUPPORTED, Operation, Rule


def _convolve(operation: Operation) -> bool:
    if operation.rank(0) != 4:
        operation.refuse("only images are supported")
    batch, channels, *image = operation.shape_of_sample(0)
    results, part, *kernel = operation.static_shape(1)
    _, _, *counts = operation.shape_of_sample(2)
    groups = operation.attribute("offset_group", 1)
    taps, places = int(np.prod(kernel)), int(np.prod(counts))
    # All taps of a channel are along one dim from here on.
    offsets = operation.reshape(operation.inputs[2], [batch, groups, taps, 2, places])
    rows, columns = (
        _elements(operation, offsets, dim, image[dim], _grid(operation, dim, kernel, counts))
        for dim in range(2)
    )
    flat = operation.reshape(operation.inputs[0], [batch, groups, channels // groups, image[0] * image[1]])
    total = ""
    for (row, row_weight), (column, column_weight) in itertools.product(rows, columns):
        place = operation.make("Mul", row, operation.constant(np.int64(image[1])))
        place = operation.make("Add", place, column)
        place = operation.reshape(place, [batch, groups, 1, taps * places])
        wide = operation.make("Expand", place, operation.ints(1, 1, channels // groups, 1))
        weight = operation.reshape(
            operation.make("Mul", row_weight, column_weight), [batch, groups, 1, taps * places]
        )
        picked = operation.make("GatherElements", flat, wide, axis=3)
        term = operation.make("Mul", picked, operation.cast(weight, operation.kind(0)))
        total = operation.make("Add", total, term) if total else term
    if operation.has(4):
        total = operation.make(
            "Mul", total, operation.reshape(operation.inputs[4], [batch, groups, 1, taps * places])
        )
    beside = operation.reshape(total, [batch, channels, taps, places])
    filters = operation.reshape(operation.inputs[1], [results, part, taps, 1])
    bias = [operation.inputs[3]] if operation.has(3) else []
    y = operation.make("Conv", beside, filters, *bias, group=operation.attribute("group", 1))
    return operation.give(operation.reshape(y, [batch, results, *counts]))


def _grid(
    operation: Operation, dim: int, kernel: list[int], counts: list[int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Returns the positions of all taps along a dim without offsets, [taps, positions]."""
    stride = (operation.attribute("strides") or [1, 1])[dim]
    dilation = (operation.attribute("dilations") or [1, 1])[dim]
    first = -(operation.attribute("pads") or [0] * 4)[dim]
    taps = np.indices(kernel)[dim].reshape(-1, 1)
    begins = np.indices(counts)[dim].reshape(1, -1)
    return np.asarray(first + begins * stride + taps * dilation, np.float64)


def _elements(
    operation: Operation,
    offsets: str,
    dim: int,
    length: int,
    grid: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> list[tuple[str, str]]:
    """Makes the indices of the two elements around each position along a dim, and their weights, which are zero
    outside: [batch, groups, taps, positions]."""
    kind = TensorProto.DOUBLE if operation.kind(2) == TensorProto.DOUBLE else TensorProto.FLOAT
    dtype = np.dtype(np.float64 if kind == TensorProto.DOUBLE else np.float32)

    def number(value: float) -> str:
        return operation.number(value, dtype)

    offset = operation.make("Squeeze", operation.slice(offsets, 3, dim, dim + 1), operation.ints(3))
    position = operation.make("Add", operation.cast(offset, kind), operation.constant(grid.astype(dtype)))
    below = operation.make("Floor", position)
    share = operation.make("Sub", position, below)
    found = []
    for index, weight in (
        (below, operation.make("Sub", number(1), share)),
        (operation.make("Add", below, number(1)), share),
    ):
        is_inside = operation.make(
            "And",
            operation.make("GreaterOrEqual", index, number(0)),
            operation.make("LessOrEqual", index, number(length - 1)),
        )
        inside = operation.make("Where", is_inside, index, number(0))
        counted = operation.make("Where", is_inside, weight, number(0))
        found.append((operation.cast(inside, TensorProto.INT64), counted))
    return found


RULES = (Rule("DeformConv", _convolve, UNSUPPORTED, forms="images"),)
