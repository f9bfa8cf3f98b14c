"""GroupQueryAttention and RotaryEmbedding of ONNX Runtime, as matmuls and a Softmax."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.heads import (
    counted_to,
    length_of,
    lowest_of,
    merge_heads,
    refuse_attributes,
    refuse_inputs,
    rotate,
    scale_of,
    split_heads,
    unsqueezed,
)
from tilewright.frontends.rewrites.rule import CONTRIB_DOMAIN, Dtype, Operation, Rule


def _rotary_embedding(operation: Operation) -> bool:
    refuse_attributes(operation, "is_packed_batching")
    if operation.attribute("scale", 1.0) != 1.0:
        operation.refuse("a scale other than 1 is not supported", "scale the caches")
    rank, shape = operation.rank(0), operation.shape(0)
    width, heads = operation.attribute("rotary_embedding_dim", 0), operation.attribute("num_heads", 0)
    half = operation.shape(2)[1]
    if shape[-1] < 0 or half < 0:
        operation.refuse("the size of its heads is not known", "declare the shapes of its operands")
    if rank == 4:
        size = shape[3]
    else:
        size = shape[2] // heads if heads else 2 * half
        heads = heads or shape[2] // size
    x = operation.inputs[0] if rank == 4 else split_heads(operation, operation.inputs[0], heads)
    positions = operation.inputs[1]
    if operation.rank(1) == 1:  # that of the first token
        counted = counted_to(operation, length_of(operation, x, 2))
        positions = unsqueezed(operation, operation.make("Add", counted, positions), 0)
    rotated = rotate(
        operation,
        x,
        positions,
        operation.inputs[2:4],
        width=width or 2 * half,
        size=size,
        interleaved=bool(operation.attribute("interleaved", 0)),
    )
    return operation.give(rotated if rank == 4 else merge_heads(operation, rotated))


# Grouped queries


def _group_query_attention(operation: Operation) -> bool:
    """Keys and values are stored behind those of the past, which is as long as `seqlens_k` says for each sequence."""
    refuse_attributes(operation, "kv_cache_bit_width", "sliding_window_cache", "qk_output")
    refuse_inputs(operation, k_scale=12, v_scale=13, query_seqlens=16)
    heads, pairs = operation.attribute("num_heads"), operation.attribute("kv_num_heads")
    query, key, value, size = _grouped_projections(operation, heads, pairs)
    for index, epsilon in ((14, "q_norm_epsilon"), (15, "k_norm_epsilon")):
        if operation.has(index):
            x = query if index == 14 else key
            default = operation.attribute("qk_norm_epsilon", 1e-6)
            x = _normal(operation, x, operation.inputs[index], operation.attribute(epsilon, default))
            query, key = (x, key) if index == 14 else (query, x)
    total = operation.make("Add", operation.cast(operation.inputs[5], TensorProto.INT64), operation.ints(1))
    total = operation.reshape(total, [-1, 1])
    length = length_of(operation, query, 2)
    # A prompt may be shorter than the batch is long; nothing is before it.
    past = operation.make("Max", operation.make("Sub", total, length), operation.ints(0))
    positions = operation.make("Add", past, counted_to(operation, length))
    if operation.attribute("do_rotary", 0):
        placed = operation.inputs[9] if operation.has(9) else positions
        interleaved = bool(operation.attribute("rotary_interleaved", 0))
        width = 2 * operation.static_shape(7)[1]
        query, key = (
            rotate(
                operation, x, placed, operation.inputs[7:9], width=width, size=size, interleaved=interleaved
            )
            for x in (query, key)
        )
    if operation.has(3):
        key, value = (
            _stored(operation, operation.inputs[index], new, past, size)
            for index, new in ((3, key), (4, value))
        )
    for output, present in ((1, key), (2, value)):
        if operation.wants(output):
            operation.give(present, output)
    key, value = (_repeated(operation, x, heads, heads // pairs, size) for x in (key, value))
    result = _grouped_scores(operation, query, key, value, positions=positions, total=total, size=size)
    return operation.give(merge_heads(operation, result))


def _grouped_projections(operation: Operation, heads: int, pairs: int) -> tuple[str, str, str, int]:
    """Makes the query, key and value, split into heads, and returns them with the size of a head."""
    width = operation.shape(0)[2]
    if width < 0:
        operation.refuse("the size of its heads is not known", "declare the shape of its query")
    if operation.has(1):
        key, value = (split_heads(operation, operation.inputs[index], pairs) for index in (1, 2))
        return split_heads(operation, operation.inputs[0], heads), key, value, width // heads
    size = width // (heads + 2 * pairs)
    bounds = np.cumsum([0, heads * size, pairs * size, pairs * size])
    query, key, value = (
        split_heads(operation, operation.slice(operation.inputs[0], 2, int(begin), int(end)), count)
        for begin, end, count in zip(bounds[:-1], bounds[1:], (heads, pairs, pairs), strict=True)
    )
    return query, key, value, size


def _normal(operation: Operation, x: str, weights: str, epsilon: float) -> str:
    """Divides each head by its root mean square, in f32."""
    wide = operation.cast(x, TensorProto.FLOAT)
    mean = operation.reduce("Mean", operation.make("Mul", wide, wide), [3])
    shifted = operation.make("Add", mean, operation.number(epsilon, np.dtype(np.float32)))
    normal = operation.make("Div", wide, operation.make("Sqrt", shifted))
    scaled = operation.make("Mul", normal, operation.cast(weights, TensorProto.FLOAT))
    return operation.cast(scaled, operation.kind(0))


def _stored(operation: Operation, cache: str, new: str, past: str, size: int) -> str:
    """Makes the cache with new elements behind the first `past` ones of each sequence.

    A cache that is declared to be as long afterwards as before has room for them; else it grows.
    """
    before, after = operation.shape(3)[2], (operation.result_shape(1) or [0, 0, -1])[2]
    both = operation.make("Concat", cache, new, axis=2)
    keys = counted_to(operation, length_of(operation, cache if before == after >= 0 else both, 2))
    length, room = length_of(operation, new, 2), length_of(operation, cache, 2)
    # Each position reads the cache if it is before the new elements, or behind them, else the new elements.
    offset = operation.make("Sub", keys, past)
    is_new = operation.make(
        "And",
        operation.make("GreaterOrEqual", offset, operation.ints(0)),
        operation.make("Less", offset, length),
    )
    last = operation.make("Sub", room, operation.ints(1))
    old = operation.make("Max", operation.make("Min", keys, last), operation.ints(0))
    index = operation.make("Where", is_new, operation.make("Add", room, offset), old)
    index = unsqueezed(operation, index, 1, 3)
    pairs = operation.attribute("kv_num_heads")
    wide = operation.make("Expand", index, operation.ints(1, pairs, 1, size))
    return operation.make("GatherElements", both, wide, axis=2)


def _repeated(operation: Operation, x: str, heads: int, groups: int, size: int) -> str:
    """Turns [batch, heads / groups, length, size] into [batch, heads, length, size], each head `groups` times."""
    if groups == 1:
        return x
    wide = operation.make("Expand", unsqueezed(operation, x, 2), operation.ints(1, 1, groups, 1, 1))
    return operation.reshape(wide, [0, heads, -1, size])


def _grouped_scores(
    operation: Operation, query: str, key: str, value: str, *, positions: str, total: str, size: int
) -> str:
    dtype = operation.dtype(0)
    scores = operation.make("MatMul", query, operation.transpose(key, [0, 1, 3, 2]))
    scores = operation.make("Mul", scores, operation.number(scale_of(operation, size), dtype))
    if cap := operation.attribute("softcap", 0.0):
        capped = operation.make("Tanh", operation.make("Div", scores, operation.number(cap, dtype)))
        scores = operation.make("Mul", capped, operation.number(cap, dtype))
    keys = counted_to(operation, length_of(operation, key, 2))
    places = unsqueezed(operation, positions, 2)  # [batch, length, 1]
    seen = operation.make("Less", keys, unsqueezed(operation, total, 2))
    if operation.attribute("causal", 1):
        seen = operation.make("LessOrEqual", keys, places)
    window = operation.attribute("local_window_size", -1)
    if window > 0:
        first = operation.make("Sub", places, operation.ints(window))
        seen = operation.make("And", seen, operation.make("Greater", keys, first))
    if operation.has(10):
        scores = operation.make("Add", scores, operation.inputs[10])
    lowest = operation.number(lowest_of(dtype), dtype)
    scores = operation.make("Where", unsqueezed(operation, seen, 1), scores, lowest)
    weights = _softmax_with_sink(operation, scores, dtype)
    return operation.make("MatMul", weights, value)


def _softmax_with_sink(operation: Operation, scores: str, dtype: Dtype) -> str:
    """Makes a Softmax whose denominator has one more exponential: that of a number for each head, or of zero."""
    if operation.has(11):
        sink = operation.reshape(operation.inputs[11], [1, -1, 1, 1])
    elif operation.attribute("smooth_softmax", -1) == 1:
        sink = operation.constant(np.zeros((1, 1, 1, 1), dtype))
    else:
        return operation.make("Softmax", scores, axis=-1)
    largest = operation.make("Max", operation.reduce("Max", scores, [3]), sink)
    terms = operation.make("Exp", operation.make("Sub", scores, largest))
    rest = operation.make("Exp", operation.make("Sub", sink, largest))
    return operation.make("Div", terms, operation.make("Add", operation.reduce("Sum", terms, [3]), rest))


RULES = (
    Rule(
        "GroupQueryAttention",
        _group_query_attention,
        "IREE's importer assumes sequences of equal length",
        domain=CONTRIB_DOMAIN,
    ),
    Rule(
        "RotaryEmbedding",
        _rotary_embedding,
        "IREE's importer supports some forms only",
        domain=CONTRIB_DOMAIN,
    ),
)
