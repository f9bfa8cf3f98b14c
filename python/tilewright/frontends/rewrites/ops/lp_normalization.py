"""LpNormalization that gives zeros for a vector of zeros."""

from __future__ import annotations

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule


def _divide_by_norm(operation: Operation) -> bool:
    """Divides by the norm, and gives zeros where it is zero."""
    source = operation.inputs[0]
    is_sum = operation.attribute("p", 2) == 1
    terms = operation.make("Abs", source) if is_sum else operation.make("Mul", source, source)
    axes = operation.constant(np.array([operation.attribute("axis", -1)], np.int64))
    total = operation.make("ReduceSum", terms, axes, keepdims=1)
    norm = total if is_sum else operation.make("Sqrt", total)
    zero, one = (operation.constant(np.array(number, operation.dtype(0))) for number in (0, 1))
    is_zero = operation.make("Equal", norm, zero)
    operation.finish("Div", source, operation.make("Where", is_zero, one, norm))
    return True


RULES = (Rule("LpNormalization", _divide_by_norm, "IREE divides a vector of zeros by zero"),)
