"""Pad that wraps around, as gathers."""

from __future__ import annotations

import numpy as np

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.rule import Operation, Rule


def _gather_wrapped(operation: Operation) -> bool:
    """Gathers along each dim by indices modulo its length; elements that negative amounts remove are not repeated."""
    if operation.attribute("mode", b"constant") != b"wrap":
        return False
    shape, pads = operation.shape(0), operation.integers(1) or []
    axes = operation.integers(3)
    axes = list(range(len(shape))) if axes is None else [axis % len(shape) for axis in axes]
    padded = operation.inputs[0]
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        if before == after == 0:
            continue
        first, last = max(0, -before), shape[axis] + min(0, after)
        if first >= last:
            raise ModelError(
                f"a Pad of mode wrap cannot repeat dim {axis}, because it is empty or its length is not known",
                where=f"'{operation.name}'",
                hint="declare the shape of its input in the graph's value_info",
            )
        length = last - first
        positions = first + np.arange(-max(0, before), length + max(0, after), dtype=np.int64) % length
        padded = operation.make("Gather", padded, operation.constant(positions), axis=axis)
    operation.finish("Identity", padded)
    return True


RULES = (Rule("Pad", _gather_wrapped, "IREE takes minutes or never ends", forms="mode wrap"),)
