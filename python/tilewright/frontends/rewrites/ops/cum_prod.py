"""CumProd as products of all elements up to each one."""

from __future__ import annotations

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule


def _multiply_masked(operation: Operation) -> bool:
    rank = operation.rank(0)
    axis = (operation.integers(1) or [0])[0] % rank
    (length,) = operation.lengths(0, axis)
    ones = np.ones((length, length), bool)
    is_factor = np.tril(ones, -1 if operation.attribute("exclusive", 0) else 0)  # [result, factor]
    if operation.attribute("reverse", 0):
        is_factor = is_factor[::-1, ::-1]
    mask = operation.constant(is_factor.reshape([length, length] + [1] * (rank - 1 - axis)))
    wide = operation.make("Unsqueeze", operation.inputs[0], operation.ints(axis))
    factors = operation.make("Where", mask, wide, operation.number(1, operation.dtype(0)))
    return operation.give(operation.reduce("Prod", factors, [axis + 1], keepdims=False))


RULES = (Rule("CumProd", _multiply_masked, "IREE's importer does not know it"),)
