"""ReduceLogSumExp relative to the maximum."""

from __future__ import annotations

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule


def _shift_exponentials(operation: Operation) -> bool:
    """Computes log Σ exp(x - m) + m, where m is the maximum, or zero if that is infinite."""
    dtype, x = operation.dtype(0), operation.inputs[0]
    axes, declared = (*operation.inputs[1:], "")[0], operation.attribute("axes")
    is_of_none = operation.attribute("noop_with_empty_axes", 0) and not axes
    if not np.issubdtype(dtype, np.floating) or is_of_none or (axes and operation.shape(1) == [0]):
        return False
    if declared is None:
        largest = operation.make("ReduceMax", x, *([axes] if axes else []), keepdims=1)
    else:  # an attribute up to opset 17, also of ReduceMax
        axes = operation.constant(np.array(declared, np.int64))
        largest = operation.make("ReduceMax", x, axes=declared, keepdims=1)
    zero = operation.constant(np.zeros((), dtype))
    shift = operation.make("Where", operation.make("IsInf", largest), zero, largest)
    terms = operation.make("Exp", operation.make("Sub", x, shift))
    total = operation.make("ReduceSum", terms, *([axes] if axes else []), keepdims=1)
    result = operation.make("Add", operation.make("Log", total), shift)
    if operation.attribute("keepdims", 1):
        operation.finish("Identity", result)
    else:
        operation.finish("Squeeze", result, *([axes] if axes else []))
    return True


RULES = (Rule("ReduceLogSumExp", _shift_exponentials, "in IREE, exponentials overflow from 89 on"),)
