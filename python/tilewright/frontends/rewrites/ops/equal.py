"""Equal of two floats that are not constants, as two comparisons.

IREE folds a comparison of a value with itself to true, also where both operands become the same value only when equal
ops are merged. A NaN differs from itself, and a model tests for it in this way.
"""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


def _compare_twice(operation: Operation) -> bool:
    if not operation.is_float(0) or operation.is_constant(0) or operation.is_constant(1):
        return False
    left, right = operation.inputs
    if left == right:
        return operation.finish("Not", operation.make("IsNaN", left))
    return operation.finish(
        "And", operation.make("LessOrEqual", left, right), operation.make("GreaterOrEqual", left, right)
    )


RULES = (
    Rule(
        "Equal",
        _compare_twice,
        "IREE folds a comparison of a value with itself to true, but NaN differs from itself",
        forms="floats of which neither is a constant",
    ),
)
