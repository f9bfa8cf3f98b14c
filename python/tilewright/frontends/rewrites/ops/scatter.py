"""ScatterElements with max, min or mul, as a reduction of all updates that hit an element; and both scatters with a
single update.

For a reduction, each element of the result is compared with the index of each update in its line along the axis. In a
tensor of unknown size, which IREE scatters into, a single update is made twice, because IREE mixes up the index and the
update if there is one of each.
"""

from __future__ import annotations

import math

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule

MOST_PAIRS = 1 << 26
"""Number of pairs of an element and an update up to which all are compared; a choice."""


def _reduce_hits(operation: Operation) -> bool:
    how = operation.attribute("reduction", b"none").decode()
    if how not in ("max", "min", "mul"):
        return _update_twice(operation, how)
    shape, updated, axis = (
        operation.static_shape(0),
        operation.static_shape(2),
        operation.attribute("axis", 0),
    )
    rank, dtype = len(shape), operation.dtype(0)
    axis %= rank
    if math.prod(shape) * updated[axis] > MOST_PAIRS:
        operation.refuse(f"reduction {how} into {math.prod(shape)} elements is not supported")
    data, indices, updates = operation.inputs
    length = operation.constant(np.array(shape[axis], operation.dtype(1)))
    zero = operation.constant(np.array(0, operation.dtype(1)))
    is_from_end = operation.make("Less", indices, zero)
    indices = operation.make("Where", is_from_end, operation.make("Add", indices, length), indices)
    # [..., length of the axis, updates, ...]: updates are along the dim behind the axis.
    places = np.arange(shape[axis], dtype=operation.dtype(1)).reshape([-1, 1] + [1] * (rank - 1 - axis))
    apart = operation.ints(axis)
    is_hit = operation.make("Equal", operation.make("Unsqueeze", indices, apart), operation.constant(places))
    bounds = np.iinfo(dtype) if dtype.kind in "iu" else None
    neutral = {
        "mul": 1,
        "max": bounds.min if bounds else -np.inf,
        "min": bounds.max if bounds else np.inf,
    }[how]
    hits = operation.make(
        "Where", is_hit, operation.make("Unsqueeze", updates, apart), operation.number(neutral, dtype)
    )
    total = operation.reduce(
        {"mul": "Prod", "max": "Max", "min": "Min"}[how], hits, [axis + 1], keepdims=False
    )
    after = [
        0 if dim == axis else size - own for dim, (size, own) in enumerate(zip(shape, updated, strict=True))
    ]
    if any(after):  # updates may be fewer than elements in the other dims, too
        sides = operation.ints(*[0] * rank, *after)
        total = operation.make("Pad", total, sides, operation.number(neutral, dtype))
    return operation.finish({"mul": "Mul", "max": "Max", "min": "Min"}[how], data, total)


def _update_twice(operation: Operation, how: str) -> bool:
    """Adds a second update of the same element: by the same value, or by zero if updates are added."""
    if set(operation.shape(2)) != {1} or -1 not in operation.shape(0):
        return False
    data, index, update = operation.inputs
    axis = operation.attribute("axis", 0)
    zeros = operation.constant(np.zeros([1] * operation.rank(2), operation.dtype(2)))
    other = zeros if how == "add" else update
    indices = operation.make("Concat", index, index, axis=axis)
    updates = operation.make("Concat", update, other, axis=axis)
    operation.same(data, indices, updates)
    return True


_NEUTRAL = {b"add": 0, b"mul": 1}
"""The update that changes nothing; for other reductions, the same update again."""


def _reduce_slice_twice(operation: Operation) -> bool:
    """Gives updates a dim, and adds a second update of the same slice, if there is a single one and a reduction."""
    how, (*batch, _) = operation.attribute("reduction", b"none"), operation.shape(1)
    is_open = -1 in operation.shape(0)
    if how == b"none" or any(size != 1 for size in batch) or (batch and not is_open):
        return False
    data, index, update = operation.inputs
    if not batch:
        # IREE's importer needs a dim of updates.
        index, update = (operation.make("Unsqueeze", value, operation.ints(0)) for value in (index, update))
    if not is_open:
        operation.same(data, index, update)
        return True
    other = update
    if how in _NEUTRAL:
        shape = operation.static_shape(2)
        neutral = np.full(shape if batch else [1, *shape], _NEUTRAL[how], operation.dtype(2))
        other = operation.constant(neutral)
    indices = operation.make("Concat", index, index, axis=0)
    operation.same(data, indices, operation.make("Concat", update, other, axis=0))
    return True


RULES = (
    Rule(
        "ScatterElements",
        _reduce_hits,
        "IREE's importer does not support it, combines only some updates, or takes an update for its index",
        forms="reductions max, min and mul, and single updates",
    ),
    Rule(
        "ScatterND",
        _reduce_slice_twice,
        "IREE takes an update for its index, or fails, if both are constants",
        forms="reductions with a single update",
    ),
)
