"""Max, Min and Clip of floats, which propagate NaN.

IREE computes Max(a, b) as `a > b ? a : b`, which is b if either is NaN. So a NaN in a is lost, and one in b is not: a
constant that is no NaN goes to the left, and for all other operands the NaN of the left one is selected.
"""

from __future__ import annotations

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule


def _keep_nan(operation: Operation) -> bool:
    if not operation.is_float(0):
        return False
    operands = sorted(range(len(operation.inputs)), key=lambda index: not _is_number(operation, index))
    if len(operands) == 1 or (len(operands) == 2 and operands[0] == 0 and _is_number(operation, 0)):
        return False
    first, *others = operands
    extremum, is_number = operation.inputs[first], _is_number(operation, first)
    for index in others:
        extremum = _extremum(operation, operation.op, extremum, operation.inputs[index], is_number=is_number)
        is_number = is_number and _is_number(operation, index)
    return operation.give(extremum)


def _extremum(operation: Operation, op: str, left: str, right: str, *, is_number: bool) -> str:
    """Makes the extremum of two operands; `is_number` says that the left one has no NaN."""
    extremum = operation.make(op, left, right)
    return extremum if is_number else operation.make("Where", operation.make("IsNaN", left), left, extremum)


def _is_number(operation: Operation, index: int) -> bool:
    """Returns True if an operand is a constant without NaN."""
    value = operation.value(index)
    return value is not None and not np.isnan(value.astype(np.float64)).any()


def _clip_by_extrema(operation: Operation) -> bool:
    """Makes Min(most, Max(least, x)), which is `most` if the bounds are in the wrong order, as ONNX says."""
    if not operation.is_float(0):
        return False
    clipped = operation.inputs[0]
    for index, op in ((1, "Max"), (2, "Min")):
        if operation.has(index):
            clipped = operation.make(op, operation.inputs[index], clipped)
    return operation.give(clipped)


_WHY = "IREE loses NaN"
RULES = (
    Rule("Clip", _clip_by_extrema, _WHY, forms="floats"),
    Rule("Max", _keep_nan, _WHY, forms="floats"),
    Rule("Min", _keep_nan, _WHY, forms="floats"),
)
