"""Reshape to a shape that is only known at run time, with its zeros and its -1 replaced by lengths.

IREE takes such a shape as it is, and then fails at run time.
"""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from tilewright.frontends.rewrites.rule import Operation, Rule


def _complete_shape(operation: Operation) -> bool:
    declared = operation.result_shape()
    if declared is not None and 0 in declared and -1 not in declared:
        # IREE's compiler divides by the number of elements.
        empty = numpy_helper.from_array(np.zeros(declared, operation.dtype(0)))
        return operation.finish("Constant", value=empty)
    if operation.is_constant(1) or not operation.is_input(1):
        return False
    x, shape = operation.inputs
    if declared is not None and -1 not in declared:
        return operation.finish("Reshape", x, operation.ints(*declared))
    (count,) = operation.static_shape(1)
    zero, one, minus = (operation.constant(np.int64(number)) for number in (0, 1, -1))
    if not operation.attribute("allowzero", 0):
        rank = operation.rank(0)
        lengths = operation.make("Shape", x)
        if rank < count:
            lengths = operation.make("Concat", lengths, operation.ints(*[1] * (count - rank)), axis=0)
        elif rank > count:
            lengths = operation.slice(lengths, 0, 0, count)
        shape = operation.make("Where", operation.make("Equal", shape, zero), lengths, shape)
    is_rest = operation.make("Equal", shape, minus)
    known = operation.reduce("Prod", operation.make("Where", is_rest, one, shape), [0])
    size = operation.make("Size", x)
    rest = operation.make("Div", size, operation.make("Max", known, one))
    return operation.finish("Reshape", x, operation.make("Where", is_rest, rest, shape))


RULES = (
    Rule(
        "Reshape",
        _complete_shape,
        "IREE fails at run time on a length of 0 or -1",
        forms="a shape that is an input of the graph, and results without elements",
    ),
)
