"""Slice with negative steps, as a slice of the reversed tensor.

IREE does not clamp a start behind the last element: it reads beyond the tensor, or refuses the model. With a step near
the largest integer, its count of elements overflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule

_Numbers = np.ndarray[Any, Any]
_MOST = (1 << 31) - 1
"""A step or an end beyond every element, which fits both types of bounds."""


def _reverse_first(operation: Operation) -> bool:
    steps = operation.value(4)
    if steps is None or (_is_reversal(operation, steps) | ((steps > 0) & (steps <= _MOST))).all():
        return False
    backwards = steps < 0
    axes = operation.value(3) if operation.has(3) else np.arange(steps.size)
    if axes is None:
        return False
    kind = operation.dtype(1)

    def vector(numbers: _Numbers) -> str:
        return operation.constant(numbers.astype(kind))

    back = axes[backwards]
    minus, in_front = vector(np.full(back.shape, -1)), vector(np.full(back.shape, -_MOST))
    x = operation.inputs[0]
    reversed_x = operation.make("Slice", x, minus, in_front, vector(back), minus) if back.size else x
    starts = _mirrored(operation, 1, backwards, _least_starts(operation, axes))
    ends = _mirrored(operation, 2, backwards)
    magnitudes = np.abs(np.clip(steps, -_MOST, _MOST))
    return operation.finish("Slice", reversed_x, starts, ends, vector(axes), vector(magnitudes))


def _is_reversal(operation: Operation, steps: _Numbers) -> _Numbers:
    """Returns for each axis whether it is reversed as a whole, which IREE does rightly."""
    starts, ends = operation.value(1), operation.value(2)
    if starts is None or ends is None:
        return np.zeros(steps.shape, bool)
    return np.asarray((starts == -1) & (ends <= -_MOST) & (steps == -1))


def _least_starts(operation: Operation, axes: _Numbers) -> _Numbers:
    """Returns the first elements, from the end: ONNX moves starts in front of them there if steps are negative."""
    lengths = np.array(operation.shape(0))[axes]
    return np.where(lengths >= 0, -lengths, np.iinfo(operation.dtype(1)).min)


def _mirrored(operation: Operation, index: int, backwards: _Numbers, least: _Numbers | None = None) -> str:
    """Counts bounds from the other end where steps are negative: the first element is the last one then, -1."""
    bounds = operation.value(index)
    if bounds is not None:
        mirrored = -1 - (bounds if least is None else np.maximum(bounds, least))
        return operation.constant(np.where(backwards, mirrored, bounds))
    given = operation.inputs[index]
    mirrored = operation.make("Sub", operation.constant(np.array(-1, operation.dtype(index))), given)
    return operation.make("Where", operation.constant(backwards), mirrored, given)


RULES = (
    Rule(
        "Slice",
        _reverse_first,
        "IREE reads beyond the tensor where the start is behind the last element, and huge steps overflow",
        forms="constant steps that are negative or huge",
    ),
)
