"""MaxPool with the indices of its maxima, and MaxUnpool, which puts elements at such indices."""

from __future__ import annotations

import itertools
import math

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule
from tilewright.frontends.rewrites.windows import (
    drop_ceil_mode,
    pad_to_windows,
    padded_to_windows,
    windows_of,
)


def _find_maxima(operation: Operation) -> bool:
    """Lays the elements of all windows beside each other, and finds the first largest one of each.

    An index counts from the beginning of the tensor, and along columns if `storage_order` is 1.
    """
    if not operation.wants(1):
        return _pool_open(operation) or (
            bool(operation.attribute("ceil_mode", 0)) and _pool_padded(operation)
        )
    batch, channels, *_ = operation.static_shape(0)
    windows, dtype, dims = windows_of(operation), operation.dtype(0), operation.rank(0) - 2
    x = operation.inputs[0]
    if not operation.is_float(0):  # bytes have no number that is less than all of them
        x, dtype = operation.cast(x, TensorProto.INT32), np.dtype(np.int32)
    lowest = -np.inf if operation.is_float(0) else np.iinfo(np.int32).min
    sides = operation.ints(0, 0, *windows.before, 0, 0, *windows.after)
    padded = operation.make("Pad", x, sides, operation.number(lowest, dtype))
    axes, steps = operation.ints(*range(2, 2 + dims)), operation.ints(*windows.strides)
    places = list(itertools.product(*(range(size) for size in windows.kernel)))
    parts = []
    for place in places:
        begins = [k * d for k, d in zip(place, windows.dilations, strict=True)]
        ends = [
            begin + (count - 1) * stride + 1
            for begin, count, stride in zip(begins, windows.counts, windows.strides, strict=True)
        ]
        part = operation.make("Slice", padded, operation.ints(*begins), operation.ints(*ends), axes, steps)
        parts.append(operation.make("Unsqueeze", part, operation.ints(2)))
    beside = operation.make("Concat", *parts, axis=2)
    largest = operation.make("Squeeze", operation.reduce("Max", beside, [2]), operation.ints(2))
    operation.finish("Cast", largest, to=operation.kind(0))
    chosen = operation.make("ArgMax", beside, axis=2, keepdims=0)
    order = range(dims)[::-1] if operation.attribute("storage_order", 0) else range(dims)
    unit, shifts, bases = 1, np.zeros(len(places), np.int64), np.zeros([1] * dims, np.int64)
    for dim in reversed(order):
        shifts += unit * windows.dilations[dim] * np.array([place[dim] for place in places])
        first = np.arange(windows.counts[dim]) * windows.strides[dim] - windows.before[dim]
        bases = bases + unit * first.reshape([-1] + [1] * (dims - 1 - dim))
        unit *= windows.image[dim]
    planes = np.arange(batch * channels).reshape([batch, channels] + [1] * dims) * unit
    index = operation.make("Gather", operation.constant(shifts), chosen, axis=0)
    return operation.finish("Add", index, operation.constant(bases + planes), output=1)


def _pool_open(operation: Operation) -> bool:
    """Pads the images of an open batch before pooling, if the pads differ, which IREE does not compile."""
    padded = padded_to_windows(operation)
    if padded is None:
        return False
    if padded.is_even:
        return pad_to_windows(operation, padded)
    pooled = _pad_with_lowest(operation, *padded)
    operation.same(pooled, pads=None, auto_pad=None, ceil_mode=None)
    return True


def _pad_with_lowest(operation: Operation, image: str, before: list[int], after: list[int]) -> str:
    dtype = operation.dtype(0)
    lowest = -np.inf if operation.is_float(0) else np.iinfo(dtype).min
    sides = operation.ints(0, 0, *before, 0, 0, *after)
    return operation.make("Pad", image, sides, operation.number(lowest, dtype))


def _pool_padded(operation: Operation) -> bool:
    """Pads the image before pooling with ceil_mode, of which IREE also makes windows that begin in the padding."""
    windows, dims = windows_of(operation), operation.rank(0) - 2
    operation.check_result(windows.counts)
    if drop_ceil_mode(operation, windows):
        return True
    padded = _pad_with_lowest(operation, operation.inputs[0], windows.before, windows.after)
    pooled = operation.make(
        "MaxPool",
        padded,
        kernel_shape=windows.kernel,
        strides=windows.strides,
        dilations=windows.dilations,
    )
    axes = operation.ints(*range(2, 2 + dims))
    return operation.finish(
        "Slice", pooled, operation.ints(*[0] * dims), operation.ints(*windows.counts), axes
    )


def _put_maxima(operation: Operation) -> bool:
    shape = operation.static_shape(0)
    kernel = operation.attribute("kernel_shape")
    strides = operation.attribute("strides") or [1] * len(kernel)
    pads = operation.attribute("pads") or [0] * 2 * len(kernel)
    image = [
        (size - 1) * strides[i] - pads[i] - pads[i + len(kernel)] + kernel[i]
        for i, size in enumerate(shape[2:])
    ]
    whole = [*shape[:2], *image]
    declared = operation.integers(2)
    zeros = operation.constant(np.zeros((), operation.dtype(0)))
    flat = operation.make("Expand", zeros, operation.ints(math.prod(whole)))
    indices, values = (operation.reshape(operation.inputs[index], [-1]) for index in (1, 0))
    placed = operation.make("ScatterElements", flat, indices, values, axis=0)
    result = operation.reshape(placed, whole)
    if declared is not None and declared != whole:  # indices count in the smaller image
        after = [size - own for size, own in zip(declared, whole, strict=True)]
        result = operation.make("Pad", result, operation.ints(*[0] * len(whole), *after))
    return operation.give(result)


RULES = (
    Rule(
        "MaxPool",
        _find_maxima,
        "IREE counts indices from the beginning of a plane, and windows that begin in the padding, and refuses "
        "such batches",
        forms="indices of the maxima, ceil_mode, open batches with uneven pads or one window",
    ),
    Rule("MaxUnpool", _put_maxima, "IREE's importer supports some forms only"),
)
