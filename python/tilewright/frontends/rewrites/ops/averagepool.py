"""AveragePool with ceil_mode, as sums over an image that is padded before, divided by the elements that count.

A window may reach beyond the padding. What is there never counts; the padding counts with `count_include_pad`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule
from tilewright.frontends.rewrites.windows import Windows, drop_ceil_mode, end_with_window, windows_of


def _divide_by_counts(operation: Operation) -> bool:
    if end_with_window(operation):
        return True
    if not operation.attribute("ceil_mode", 0) or operation.attribute("auto_pad", b"NOTSET") != b"NOTSET":
        return False
    windows, dims, dtype = windows_of(operation), operation.rank(0) - 2, operation.dtype(0)
    operation.check_result(windows.counts)
    if drop_ceil_mode(operation, windows):
        return True
    sides = operation.ints(0, 0, *windows.before, 0, 0, *windows.after)
    padded = operation.make("Pad", operation.inputs[0], sides)
    pooled = operation.make(
        "AveragePool",
        padded,
        kernel_shape=windows.kernel,
        strides=windows.strides,
        **({"dilations": windows.dilations} if set(windows.dilations) != {1} else {}),
    )
    begins, axes = operation.ints(*[0] * dims), operation.ints(*range(2, 2 + dims))
    pooled = operation.make("Slice", pooled, begins, operation.ints(*windows.counts), axes)
    factors = math.prod(windows.kernel) / _counts(operation, windows)
    return operation.finish("Mul", pooled, operation.constant(factors.astype(dtype)))


def _counts(operation: Operation, windows: Windows) -> np.ndarray[Any, Any]:
    """Returns how many elements of each window count."""
    dims = len(windows.image)
    pads = operation.attribute("pads") or [0] * 2 * dims
    counts = np.ones([1] * dims)
    for dim, size in enumerate(windows.image):
        low, high = (
            (-pads[dim], size + pads[dim + dims])
            if operation.attribute("count_include_pad", 0)
            else (0, size)
        )
        begins = np.arange(windows.counts[dim]) * windows.strides[dim] - windows.before[dim]
        places = begins[:, None] + np.arange(windows.kernel[dim]) * windows.dilations[dim]
        inside = ((places >= low) & (places < high)).sum(axis=1)
        counts = counts * inside.reshape([-1] + [1] * (dims - 1 - dim))
    return counts


RULES = (
    Rule(
        "AveragePool",
        _divide_by_counts,
        "IREE pads at both ends for ceil_mode, and counts what windows cover beyond the padding",
        forms="ceil_mode, and open batches with one window along a dim",
    ),
)
