"""Neg of integers, as a difference."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


def _subtract(operation: Operation) -> bool:
    if operation.is_float(0):
        return False
    return operation.finish("Sub", operation.number(0, operation.dtype(0)), operation.inputs[0])


RULES = (
    Rule("Neg", _subtract, "IREE computes it in f32, which rounds integers beyond 24 bits", forms="integers"),
)
