"""LRN with a dynamic shape, as a sum of slices."""

from __future__ import annotations

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule


def _sum_neighbouring_squares(operation: Operation) -> bool:
    """Computes x / (bias + alpha/size Σ x²)^beta with one slice of the padded channels for each channel of a
    window."""
    shape = operation.shape(0)
    if -1 not in shape or shape[1] < 0:
        return False
    x, size, dtype = operation.inputs[0], operation.attribute("size"), operation.dtype(0)

    def number(value: float) -> str:
        return operation.constant(np.array(value, dtype))

    def ints(*values: int) -> str:
        return operation.constant(np.array(values, np.int64))

    before, others = (size - 1) // 2, [0] * (len(shape) - 2)
    sides = ints(0, before, *others, 0, size - 1 - before, *others)
    padded = operation.make("Pad", operation.make("Mul", x, x), sides)
    slices = [
        operation.make("Slice", padded, ints(first), ints(first + shape[1]), ints(1)) for first in range(size)
    ]
    mean = operation.make(
        "Mul", operation.make("Sum", *slices), number(operation.attribute("alpha", 1e-4) / size)
    )
    divisor = operation.make("Add", mean, number(operation.attribute("bias", 1.0)))
    operation.finish("Div", x, operation.make("Pow", divisor, number(operation.attribute("beta", 0.75))))
    return True


RULES = (
    Rule(
        "LRN",
        _sum_neighbouring_squares,
        "IREE ends the process or reads other numbers",
        forms="dynamic shapes",
    ),
)
