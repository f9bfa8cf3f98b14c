"""Expand along dims of unknown length to a known one, as gathers of the only element or of all."""

from __future__ import annotations

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule, UnknownType

_WHOLE = np.dtype(np.int64)


def _gather_unknown(operation: Operation) -> bool:
    """Gathers places from 0 on, of which those behind the last element stand for it.

    IREE refuses, when it is called, to expand places whose number is neither of the two lengths.
    """
    wanted = operation.value(1)
    try:
        shape = operation.shape(0)
    except UnknownType:
        return False
    if wanted is None:
        return False
    lengths = [1] * len(shape) + wanted.tolist()
    lengths = lengths[len(lengths) - len(shape) :] if shape else []
    axes = [axis for axis, size in enumerate(shape) if size < 0 and lengths[axis] > 1]
    expanded = operation.inputs[0]
    for axis in axes:
        size = operation.make("Gather", operation.make("Shape", expanded), operation.number(axis, _WHOLE))
        wanted_size, one = operation.number(lengths[axis], _WHOLE), operation.number(1, _WHOLE)
        count = operation.make("Where", operation.make("Equal", size, one), wanted_size, size)
        places = operation.make("Range", operation.number(0, _WHOLE), count, one)
        checked = operation.make("Expand", places, operation.ints(lengths[axis]))
        inside = operation.make("Min", checked, operation.make("Sub", size, one))
        expanded = operation.make("Gather", expanded, inside, axis=axis)
    return bool(axes) and operation.finish("Expand", expanded, operation.inputs[1])


RULES = (
    Rule(
        "Expand",
        _gather_unknown,
        "IREE repeats known dims only",
        forms="unknown dims, to constants",
    ),
)
