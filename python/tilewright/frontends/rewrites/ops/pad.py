"""Pad by the edge, by reflection or around, as gathers along each dim; by a constant, behind a slice.

Elements that negative amounts remove are not repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.rule import Operation, Rule

_TO_THE_END = np.iinfo(np.int64).max


def _spell_out(operation: Operation) -> bool:
    mode = operation.attribute("mode", b"constant").decode()
    if mode == "constant":
        return _remove_first(operation)
    shape, rank = operation.shape(0), operation.rank(0)
    if mode != "wrap" and operation.has(1) and operation.value(1) is None:
        operation.refuse("the amounts of padding are not known", "make them an initializer")
    pads, axes = operation.integers(1) or [], operation.integers(3)
    axes = list(range(rank)) if axes is None else [axis % rank for axis in axes]
    amounts = [
        (axis, before, after)
        for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True)
        if before or after
    ]
    if mode == "edge" and _is_of_iree(amounts, rank):
        return False
    padded = operation.inputs[0]
    for axis, before, after in amounts:
        first, last = max(0, -before), shape[axis] + min(0, after)
        if first >= last:
            raise ModelError(
                f"a Pad of mode {mode} cannot repeat dim {axis}, because it is empty or its length is not known",
                where=f"'{operation.name}'",
                hint="fix the model's open dims with dims=, or declare them in the graph's value_info",
            )
        length = last - first
        places = np.arange(-max(0, before), length + max(0, after), dtype=np.int64)
        positions = operation.constant(first + _inside(mode, places, length))
        padded = operation.make("Gather", padded, positions, axis=axis)
    return operation.give(padded)


def _remove_first(operation: Operation) -> bool:
    """Removes what negative amounts remove before the rest is padded."""
    value = operation.value(1)
    if value is None or not (value < 0).any():
        return False
    amounts = value.reshape(-1)
    ends = amounts[len(amounts) // 2 :]
    axes = operation.inputs[3] if operation.has(3) else operation.ints(*range(operation.rank(0)))
    begins = operation.constant(np.maximum(0, -amounts[: len(ends)]))
    kept = operation.make(
        "Slice", operation.inputs[0], begins, operation.constant(np.where(ends < 0, ends, _TO_THE_END)), axes
    )
    grown = operation.constant(np.maximum(0, amounts))
    return operation.give(operation.make("Pad", kept, grown, *operation.inputs[2:]))


def _is_of_iree(amounts: list[tuple[int, int, int]], rank: int) -> bool:
    """Returns True for the forms that IREE's importer gets right: nothing removed, and the last two dims only."""
    return all(axis >= rank - 2 and min(before, after) >= 0 for axis, before, after in amounts) and rank > 2


def _inside(mode: str, places: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    """Returns the positions inside a dim that places outside repeat."""
    if mode == "wrap":
        return np.asarray(places % length)
    if mode == "edge":
        return np.asarray(np.clip(places, 0, length - 1))
    period = max(1, 2 * (length - 1))
    turned = places % period
    return np.asarray(np.minimum(turned, period - turned) if length > 1 else 0 * places)


RULES = (
    Rule(
        "Pad",
        _spell_out,
        "IREE takes minutes to wrap, keeps what to remove, and pads the last dims only",
        forms="modes wrap and reflect; negative amounts; mode edge of earlier dims",
    ),
)
