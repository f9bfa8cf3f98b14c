"""Reshape to a shape that comes from data at run time, with its zeros and its -1 replaced by lengths; and of several
open dims, all of which become one dim first.

IREE takes such a shape as it is, and an open dim for a dim of one element, and then fails at run time.
"""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from tilewright.frontends.rewrites.rule import Operation, Rule, UnknownType, subgraphs


def _complete_shape(operation: Operation) -> bool:
    declared = operation.result_shape()
    if declared is not None and 0 in declared and -1 not in declared:
        # IREE's compiler divides by the number of elements.
        empty = numpy_helper.from_array(np.zeros(declared, operation.dtype(0)))
        return operation.finish("Constant", value=empty)
    if not _comes_from_data(operation, operation.inputs[1]):
        return _flatten_first(operation)
    x, shape = operation.inputs
    if declared is not None and -1 not in declared:
        return operation.finish("Reshape", x, operation.ints(*declared))
    if not operation.attribute("allowzero", 0):
        shape = _without_zeros(operation)
    return operation.finish("Reshape", x, _with_rest(operation, shape))


def _comes_from_data(operation: Operation, name: str) -> bool:
    """Returns True if a value depends on more than constants and the lengths of tensors."""
    left, seen = [name], {name}
    while left:
        each = left.pop()
        maker = operation.maker_of(each)
        if maker is None:
            if operation.value_of(each) is None:
                return True
        elif any(subgraphs(maker)):
            return True
        elif maker.op_type not in ("Constant", "Shape", "Size"):
            fresh = {read for read in maker.input if read} - seen
            seen |= fresh
            left += fresh
    return False


def _with_rest(operation: Operation, shape: str) -> str:
    """Makes the shape with the length that is left in place of -1."""
    one, minus = (operation.constant(np.int64(number)) for number in (1, -1))
    is_rest = operation.make("Equal", shape, minus)
    known = operation.reduce("Prod", operation.make("Where", is_rest, one, shape), [0])
    size = operation.make("Size", operation.inputs[0])
    rest = operation.make("Div", size, operation.make("Max", known, one))
    return operation.make("Where", is_rest, rest, shape)


def _without_zeros(operation: Operation) -> str:
    """Makes the wanted shape with lengths of the operand for zeros."""
    x, shape = operation.inputs
    rank, (count,) = operation.rank(0), operation.static_shape(1)
    lengths = operation.make("Shape", x)
    if rank < count:
        lengths = operation.make("Concat", lengths, operation.ints(*[1] * (count - rank)), axis=0)
    elif rank > count:
        lengths = operation.slice(lengths, 0, 0, count)
    is_zero = operation.make("Equal", shape, operation.constant(np.int64(0)))
    return operation.make("Where", is_zero, lengths, shape)


def _flatten_first(operation: Operation) -> bool:
    """Makes all dims one before they become those of the result, if several open ones are not copied."""
    wanted, allows_zero = operation.value(1), bool(operation.attribute("allowzero", 0))
    if wanted is None:
        return False  # IREE merges dims rightly if the shape is computed
    copied = [] if allows_zero else np.flatnonzero(wanted == 0).tolist()
    try:
        shape = operation.shape(0)
    except UnknownType:
        return False
    if [length for axis, length in enumerate(shape) if axis not in copied].count(-1) <= 1:
        return False
    x, target = operation.inputs
    flat = operation.reshape(x, [-1])
    if copied:
        target = _with_rest(operation, _without_zeros(operation))
    return operation.finish("Reshape", flat, target)


RULES = (
    Rule(
        "Reshape",
        _complete_shape,
        "IREE fails on a length of 0 or -1, and merges open dims wrongly",
        forms="a shape that comes from an input, several open dims, no elements",
    ),
)
