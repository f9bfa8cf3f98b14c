"""Heads of attention: splitting and merging them, positions, causal order, and rotations.

Tensors with heads have the shape [batch, heads, length, size of a head].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.frontends.rewrites.rule import Dtype, Operation

# Lengths and positions


def length_of(operation: Operation, x: str, axis: int) -> str:
    """Makes the length of a dim, a vector of one number."""
    shape = operation.make("Shape", x)
    return operation.make("Slice", shape, operation.ints(axis), operation.ints(axis + 1))


def counted_to(operation: Operation, length: str) -> str:
    """Makes the vector 0, 1, ..., of a length that is given as a vector of one number."""
    end = operation.make("Squeeze", length, operation.ints(0))
    return operation.make("Range", operation.constant(np.int64(0)), end, operation.constant(np.int64(1)))


def unsqueezed(operation: Operation, x: str, *axes: int) -> str:
    return operation.make("Unsqueeze", x, operation.ints(*axes))


def is_causal(operation: Operation, query: str, key: str) -> str:
    """Makes booleans [queries, keys]: the key is no later than the query, where the last ones are at one position."""
    keys, queries = length_of(operation, key, 2), length_of(operation, query, 2)
    past = operation.make("Sub", keys, queries)
    places = operation.make("Add", counted_to(operation, queries), past)
    return operation.make("LessOrEqual", counted_to(operation, keys), unsqueezed(operation, places, 1))


# Heads


def split_heads(operation: Operation, x: str, heads: int) -> str:
    """Turns [batch, length, heads · size] into [batch, heads, length, size]."""
    return operation.transpose(operation.reshape(x, [0, 0, heads, -1]), [0, 2, 1, 3])


def merge_heads(operation: Operation, x: str) -> str:
    return operation.reshape(operation.transpose(x, [0, 2, 1, 3]), [0, 0, -1])


def element_of(operation: Operation, x: str, index: int, axis: int) -> str:
    """Makes one element along an axis, which is removed."""
    return operation.make("Gather", x, operation.constant(np.int64(index)), axis=axis)


def with_past(operation: Operation, past: str, new: str) -> str:
    return operation.make("Concat", past, new, axis=2)


# Scores


def lowest_of(dtype: Dtype) -> float:
    return -65504.0 if dtype == np.float16 else float(np.finfo(np.float32).min)


def scale_of(operation: Operation, size: int) -> float:
    given = operation.attribute("scale", 0.0)
    return given if given else 1 / math.sqrt(size)


# Rotary embeddings


def rotate(
    operation: Operation,
    x: str,
    positions: str,
    caches: Sequence[str],
    *,
    width: int,
    size: int,
    interleaved: bool,
) -> str:
    """Rotates the first `width` elements of each head of `size` by the angles of its position.

    `x` is [batch, heads, length, size], `positions` is [batch or 1, length]; the caches have cosines and sines.
    """
    cosine, sine = (
        unsqueezed(operation, operation.make("Gather", cache, positions, axis=0), 1) for cache in caches
    )
    if interleaved:
        left, right = (operation.slice(x, 3, begin, width, 2) for begin in (0, 1))
    else:
        left, right = operation.slice(x, 3, 0, width // 2), operation.slice(x, 3, width // 2, width)
    real = operation.make("Sub", operation.make("Mul", left, cosine), operation.make("Mul", right, sine))
    imaginary = operation.make("Add", operation.make("Mul", left, sine), operation.make("Mul", right, cosine))
    if interleaved:
        both = operation.make(
            "Concat", unsqueezed(operation, real, 4), unsqueezed(operation, imaginary, 4), axis=4
        )
        parts = [operation.reshape(both, [0, 0, 0, width])]
    else:
        parts = [real, imaginary]
    if width < size:
        parts.append(operation.slice(x, 3, width, size))
    return parts[0] if len(parts) == 1 else operation.make("Concat", *parts, axis=3)


# Inputs and attributes that no rule takes


def refuse_inputs(operation: Operation, **inputs: int) -> None:
    for what, index in inputs.items():
        if operation.has(index):
            operation.refuse(f"its input {what} is not supported", "export the model without it")


def refuse_attributes(operation: Operation, *names: str) -> None:
    for name in names:
        if operation.attribute(name, 0):
            operation.refuse(f"the attribute {name} is not supported", "export the model without it")
