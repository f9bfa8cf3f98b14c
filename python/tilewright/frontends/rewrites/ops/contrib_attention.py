"""The attentions of ONNX Runtime: Attention, MultiHeadAttention, QAttention, GroupQueryAttention and RotaryEmbedding.

Each becomes matmuls and a Softmax. Tensors with heads have the shape [batch, heads, length, size of a head].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import CONTRIB_DOMAIN, UNSUPPORTED, Dtype, Operation, Rule

# Lengths and positions


def _length(operation: Operation, x: str, axis: int) -> str:
    """Makes the length of a dim, a vector of one number."""
    shape = operation.make("Shape", x)
    return operation.make("Slice", shape, operation.ints(axis), operation.ints(axis + 1))


def _counted(operation: Operation, length: str) -> str:
    """Makes the vector 0, 1, ..., of a length that is given as a vector of one number."""
    end = operation.make("Squeeze", length, operation.ints(0))
    return operation.make("Range", operation.constant(np.int64(0)), end, operation.constant(np.int64(1)))


def _unsqueezed(operation: Operation, x: str, *axes: int) -> str:
    return operation.make("Unsqueeze", x, operation.ints(*axes))


def _is_causal(operation: Operation, query: str, key: str) -> str:
    """Makes booleans [queries, keys]: the key is no later than the query, where the last ones are at one position."""
    keys, queries = _length(operation, key, 2), _length(operation, query, 2)
    past = operation.make("Sub", keys, queries)
    places = operation.make("Add", _counted(operation, queries), past)
    return operation.make("LessOrEqual", _counted(operation, keys), _unsqueezed(operation, places, 1))


# Heads


def _split_heads(operation: Operation, x: str, heads: int) -> str:
    """Turns [batch, length, heads · size] into [batch, heads, length, size]."""
    return operation.transpose(operation.reshape(x, [0, 0, heads, -1]), [0, 2, 1, 3])


def _merge_heads(operation: Operation, x: str) -> str:
    return operation.reshape(operation.transpose(x, [0, 2, 1, 3]), [0, 0, -1])


def _part(operation: Operation, x: str, index: int, axis: int) -> str:
    """Makes one element along an axis, which is removed."""
    return operation.make("Gather", x, operation.constant(np.int64(index)), axis=axis)


def _with_past(operation: Operation, past: str, new: str) -> str:
    return operation.make("Concat", past, new, axis=2)


# Attention


def _lowest(dtype: Dtype) -> float:
    return -65504.0 if dtype == np.float16 else float(np.finfo(np.float32).min)


def _attend(
    operation: Operation,
    query: str,
    key: str,
    value: str,
    *,
    dtype: Dtype,
    scale: float,
    terms: Sequence[str] = (),
) -> str:
    """Makes softmax(scale · Q Kᵀ + terms) V."""
    scores = operation.make("MatMul", query, operation.transpose(key, [0, 1, 3, 2]))
    scores = operation.make("Mul", scores, operation.number(scale, dtype))
    for term in terms:
        scores = operation.make("Add", scores, term)
    return operation.make("MatMul", operation.make("Softmax", scores, axis=-1), value)


def _mask(operation: Operation, index: int, query: str, key: str, dtype: Dtype) -> str:
    """Makes what is added to the scores, of rank 4: zero, or a large negative number for keys that are masked.

    The input is a mask of rank 2, 3 or 4, or a vector of the ends of sequences, with their beginnings behind them.
    """
    mask, rank = operation.inputs[index], operation.rank(index)
    if rank == 1:
        count, (batch, *_) = operation.static_shape(index)[0], operation.shape(0)
        if batch < 0 or count not in (batch, 2 * batch):
            operation.refuse(f"a mask of shape [{count}] for {batch} sequences is not supported")
        keys = _counted(operation, _length(operation, key, 2))
        ends = operation.cast(mask, TensorProto.INT64)
        keep = operation.make("Less", keys, operation.reshape(operation.slice(ends, 0, 0, batch), [-1, 1]))
        if count == 2 * batch:
            begins = operation.reshape(operation.slice(ends, 0, batch, count), [-1, 1])
            keep = operation.make("And", keep, operation.make("GreaterOrEqual", keys, begins))
        keep = _unsqueezed(operation, keep, 1, 2)
    else:
        zero = operation.constant(np.zeros((), operation.dtype(index)))
        keep = operation.make("Greater", mask, zero)
        if rank == 2:
            keep = _unsqueezed(operation, keep, 1, 2)
        elif rank == 3:
            keep = _unsqueezed(operation, keep, 1)
        else:
            keys, queries = _length(operation, key, 2), _length(operation, query, 2)
            begin = operation.make("Concat", operation.make("Sub", keys, queries), operation.ints(0), axis=0)
            end = operation.make("Concat", keys, keys, axis=0)
            keep = operation.make("Slice", keep, begin, end, operation.ints(2, 3))
    filtered = operation.attribute("mask_filter_value", -10000.0)
    zero, masked = operation.number(0, dtype), operation.number(filtered, dtype)
    return operation.make("Where", keep, zero, masked)


def _terms(operation: Operation, query: str, key: str, *, mask: int, bias: int, dtype: Dtype) -> list[str]:
    """Makes what is added to the scores: a mask, which may be causal, and a bias; `mask` and `bias` are inputs."""
    terms = [_mask(operation, mask, query, key, dtype)] if operation.has(mask) else []
    if operation.attribute("unidirectional", 0):
        seen = terms[0] if terms else operation.number(0, dtype)
        later = operation.number(_lowest(dtype), dtype)
        terms = [operation.make("Where", _is_causal(operation, query, key), seen, later)]
    if operation.has(bias):
        terms.append(operation.inputs[bias])
    return terms


def _scale(operation: Operation, size: int) -> float:
    given = operation.attribute("scale", 0.0)
    return given if given else 1 / math.sqrt(size)


def _refuse_inputs(operation: Operation, **inputs: int) -> None:
    for what, index in inputs.items():
        if operation.has(index):
            operation.refuse(f"its input {what} is not supported", "export the model without it")


def _refuse_attributes(operation: Operation, *names: str) -> None:
    for name in names:
        if operation.attribute(name, 0):
            operation.refuse(f"the attribute {name} is not supported", "export the model without it")


def _attend_projected(
    operation: Operation,
    projected: str,
    *,
    sizes: Sequence[int],
    mask: int,
    past: int,
    bias: int,
    dtype: Dtype,
) -> bool:
    """Makes the attention of queries, keys and values that lie behind each other in the last dim."""
    heads, bounds = operation.attribute("num_heads"), np.cumsum([0, *sizes])
    query, key, value = (
        _split_heads(operation, operation.slice(projected, 2, int(begin), int(end)), heads)
        for begin, end in itertools.pairwise(bounds)
    )
    if operation.has(past):
        before = operation.inputs[past]
        key = _with_past(operation, _part(operation, before, 0, 0), key)
        value = _with_past(operation, _part(operation, before, 1, 0), value)
    if operation.wants(1):
        operation.finish(
            "Concat", _unsqueezed(operation, key, 0), _unsqueezed(operation, value, 0), output=1, axis=0
        )
    terms = _terms(operation, query, key, mask=mask, bias=bias, dtype=dtype)
    scale = _scale(operation, sizes[0] // heads)
    result = _attend(operation, query, key, value, dtype=dtype, scale=scale, terms=terms)
    return operation.give(_merge_heads(operation, result))


def _attention(operation: Operation) -> bool:
    _refuse_attributes(operation, "do_rotary", "past_present_share_buffer")
    _refuse_inputs(operation, past_sequence_length=6)
    projected = operation.make("MatMul", *operation.inputs[:2])
    if operation.has(2):
        projected = operation.make("Add", projected, operation.inputs[2])
    width = operation.shape(1)[1]
    sizes = operation.attribute("qkv_hidden_sizes") or [width // 3] * 3
    if width < 0:
        operation.refuse("the shape of its weights is not known", "declare it in the graph's value_info")
    return _attend_projected(
        operation, projected, sizes=sizes, mask=3, past=4, bias=5, dtype=operation.dtype(0)
    )


def _attention_of_bytes(operation: Operation) -> bool:
    _refuse_attributes(operation, "do_rotary", "past_present_share_buffer")
    numbers, weights, bias, step, scale, *_ = operation.inputs
    zeros = [operation.inputs[index] if operation.has(index) else "" for index in (6, 7)]
    while zeros and not zeros[-1]:
        zeros.pop()
    product = operation.make("MatMulInteger", numbers, weights, *zeros)
    factor = operation.make("Mul", step, scale)
    projected = operation.make("Mul", operation.cast(product, TensorProto.FLOAT), factor)
    projected = operation.make("Add", projected, bias)
    sizes = [operation.static_shape(1)[1] // 3] * 3
    dtype = np.dtype(np.float32)
    return _attend_projected(operation, projected, sizes=sizes, mask=5, past=8, bias=-1, dtype=dtype)


def _multi_head_attention(operation: Operation) -> bool:
    _refuse_inputs(operation, past_sequence_length=8, cache_indirection=9)
    if operation.wants(3):
        operation.refuse("its output of scores is not supported", "export the model without it")
    query, key, value = _projections(operation)
    if operation.has(6):
        key = _with_past(operation, operation.inputs[6], key)
        value = _with_past(operation, operation.inputs[7], value)
    for output, present in ((1, key), (2, value)):
        if operation.wants(output):
            operation.give(present, output)
    dtype, heads = operation.dtype(0), operation.attribute("num_heads")
    shape = operation.shape(0)
    size = shape[4] if len(shape) == 5 else shape[2] // heads
    if shape[-1] < 0:
        operation.refuse("the size of its heads is not known", "declare the shape of its query")
    terms = _terms(operation, query, key, mask=4, bias=5, dtype=dtype)
    scale = _scale(operation, size)
    result = _attend(operation, query, key, value, dtype=dtype, scale=scale, terms=terms)
    return operation.give(_merge_heads(operation, result))


def _projections(operation: Operation) -> tuple[str, str, str]:
    """Makes the query, key and value of a MultiHeadAttention, split into heads, with their biases."""
    heads, ranks = operation.attribute("num_heads"), [operation.rank(0)]
    if operation.has(1):
        ranks.append(operation.rank(1))
    if operation.has(3) and ranks not in ([3, 3], [5]):
        operation.refuse("a bias of keys that are packed with values or split into heads is not supported")
    if ranks == [5]:
        packed = operation.inputs[0]
        if operation.has(3):
            size = operation.static_shape(0)[4]
            bias = operation.reshape(operation.inputs[3], [3, heads, size])
            packed = operation.make("Add", packed, operation.transpose(bias, [1, 0, 2]))
        parts = (_part(operation, packed, index, 3) for index in range(3))
        query, key, value = (operation.transpose(part, [0, 2, 1, 3]) for part in parts)
        return query, key, value
    inputs = list(operation.inputs[:3])
    if operation.has(3):
        widths = [operation.shape(index)[2] for index in range(3)]
        if -1 in widths:
            operation.refuse("the widths of its operands are not known", "declare their shapes")
        bounds = np.cumsum([0, *widths])
        for index in range(3):
            bias = operation.slice(operation.inputs[3], 0, int(bounds[index]), int(bounds[index + 1]))
            inputs[index] = operation.make("Add", inputs[index], bias)
    query = _split_heads(operation, inputs[0], heads)
    if ranks[1] == 5:
        key, value = (
            operation.transpose(_part(operation, inputs[1], index, 3), [0, 2, 1, 3]) for index in range(2)
        )
    elif ranks[1] == 4:
        key, value = inputs[1:3]
    else:
        key, value = (_split_heads(operation, x, heads) for x in inputs[1:3])
    return query, key, value


# Rotary embeddings


def _rotated(
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
        _unsqueezed(operation, operation.make("Gather", cache, positions, axis=0), 1) for cache in caches
    )
    if interleaved:
        left, right = (operation.slice(x, 3, begin, width, 2) for begin in (0, 1))
    else:
        left, right = operation.slice(x, 3, 0, width // 2), operation.slice(x, 3, width // 2, width)
    real = operation.make("Sub", operation.make("Mul", left, cosine), operation.make("Mul", right, sine))
    imaginary = operation.make("Add", operation.make("Mul", left, sine), operation.make("Mul", right, cosine))
    if interleaved:
        both = operation.make(
            "Concat", _unsqueezed(operation, real, 4), _unsqueezed(operation, imaginary, 4), axis=4
        )
        parts = [operation.reshape(both, [0, 0, 0, width])]
    else:
        parts = [real, imaginary]
    if width < size:
        parts.append(operation.slice(x, 3, width, size))
    return parts[0] if len(parts) == 1 else operation.make("Concat", *parts, axis=3)


def _rotary_embedding(operation: Operation) -> bool:
    _refuse_attributes(operation, "is_packed_batching")
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
    x = operation.inputs[0] if rank == 4 else _split_heads(operation, operation.inputs[0], heads)
    positions = operation.inputs[1]
    if operation.rank(1) == 1:  # that of the first token
        counted = _counted(operation, _length(operation, x, 2))
        positions = _unsqueezed(operation, operation.make("Add", counted, positions), 0)
    rotated = _rotated(
        operation,
        x,
        positions,
        operation.inputs[2:4],
        width=width or 2 * half,
        size=size,
        interleaved=bool(operation.attribute("interleaved", 0)),
    )
    return operation.give(rotated if rank == 4 else _merge_heads(operation, rotated))


# Grouped queries


def _group_query_attention(operation: Operation) -> bool:
    """Keys and values are stored behind those of the past, which is as long as `seqlens_k` says for each sequence."""
    _refuse_attributes(operation, "kv_cache_bit_width", "sliding_window_cache", "qk_output")
    _refuse_inputs(operation, k_scale=12, v_scale=13, query_seqlens=16)
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
    length = _length(operation, query, 2)
    # A prompt may be shorter than the batch is long; nothing is before it.
    past = operation.make("Max", operation.make("Sub", total, length), operation.ints(0))
    positions = operation.make("Add", past, _counted(operation, length))
    if operation.attribute("do_rotary", 0):
        placed = operation.inputs[9] if operation.has(9) else positions
        interleaved = bool(operation.attribute("rotary_interleaved", 0))
        width = 2 * operation.static_shape(7)[1]
        query, key = (
            _rotated(
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
    return operation.give(_merge_heads(operation, result))


def _grouped_projections(operation: Operation, heads: int, pairs: int) -> tuple[str, str, str, int]:
    """Makes the query, key and value, split into heads, and returns them with the size of a head."""
    width = operation.shape(0)[2]
    if width < 0:
        operation.refuse("the size of its heads is not known", "declare the shape of its query")
    if operation.has(1):
        key, value = (_split_heads(operation, operation.inputs[index], pairs) for index in (1, 2))
        return _split_heads(operation, operation.inputs[0], heads), key, value, width // heads
    size = width // (heads + 2 * pairs)
    bounds = np.cumsum([0, heads * size, pairs * size, pairs * size])
    query, key, value = (
        _split_heads(operation, operation.slice(operation.inputs[0], 2, int(begin), int(end)), count)
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
    keys = _counted(operation, _length(operation, cache if before == after >= 0 else both, 2))
    length, room = _length(operation, new, 2), _length(operation, cache, 2)
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
    index = _unsqueezed(operation, index, 1, 3)
    pairs = operation.attribute("kv_num_heads")
    wide = operation.make("Expand", index, operation.ints(1, pairs, 1, size))
    return operation.make("GatherElements", both, wide, axis=2)


def _repeated(operation: Operation, x: str, heads: int, groups: int, size: int) -> str:
    """Turns [batch, heads / groups, length, size] into [batch, heads, length, size], each head `groups` times."""
    if groups == 1:
        return x
    wide = operation.make("Expand", _unsqueezed(operation, x, 2), operation.ints(1, 1, groups, 1, 1))
    return operation.reshape(wide, [0, heads, -1, size])


def _grouped_scores(
    operation: Operation, query: str, key: str, value: str, *, positions: str, total: str, size: int
) -> str:
    dtype = operation.dtype(0)
    scores = operation.make("MatMul", query, operation.transpose(key, [0, 1, 3, 2]))
    scores = operation.make("Mul", scores, operation.number(_scale(operation, size), dtype))
    if cap := operation.attribute("softcap", 0.0):
        capped = operation.make("Tanh", operation.make("Div", scores, operation.number(cap, dtype)))
        scores = operation.make("Mul", capped, operation.number(cap, dtype))
    keys = _counted(operation, _length(operation, key, 2))
    places = _unsqueezed(operation, positions, 2)  # [batch, length, 1]
    seen = operation.make("Less", keys, _unsqueezed(operation, total, 2))
    if operation.attribute("causal", 1):
        seen = operation.make("LessOrEqual", keys, places)
    window = operation.attribute("local_window_size", -1)
    if window > 0:
        first = operation.make("Sub", places, operation.ints(window))
        seen = operation.make("And", seen, operation.make("Greater", keys, first))
    if operation.has(10):
        scores = operation.make("Add", scores, operation.inputs[10])
    lowest = operation.number(_lowest(dtype), dtype)
    scores = operation.make("Where", _unsqueezed(operation, seen, 1), scores, lowest)
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
    Rule("Attention", _attention, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule(
        "GroupQueryAttention",
        _group_query_attention,
        "IREE's importer assumes sequences of equal length",
        domain=CONTRIB_DOMAIN,
    ),
    Rule("MultiHeadAttention", _multi_head_attention, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QAttention", _attention_of_bytes, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule(
        "RotaryEmbedding",
        _rotary_embedding,
        "IREE's importer supports some forms only",
        domain=CONTRIB_DOMAIN,
    ),
)
