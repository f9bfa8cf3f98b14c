"""Compress as a gather of the elements whose condition holds."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


def _gather_chosen(operation: Operation) -> bool:
    x, condition = operation.inputs
    axis = operation.attribute("axis")
    if axis is None:
        x, axis = operation.reshape(x, [-1]), 0
    chosen = operation.make("Squeeze", operation.make("NonZero", condition), operation.ints(0))
    return operation.give_declared(operation.make("Gather", x, chosen, axis=axis))


RULES = (Rule("Compress", _gather_chosen, "IREE fails on the shape of the condition"),)
