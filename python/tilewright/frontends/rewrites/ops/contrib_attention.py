"""The attentions of ONNX Runtime with as many heads of keys as of queries: Attention, MultiHeadAttention, QAttention.

Each becomes matmuls and a Softmax.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.heads import (
    counted_to,
    element_of,
    is_causal,
    length_of,
    lowest_of,
    merge_heads,
    refuse_attributes,
    refuse_inputs,
    scale_of,
    split_heads,
    unsqueezed,
    with_past,
)
from tilewright.frontends.rewrites.rule import CONTRIB_DOMAIN, UNSUPPORTED, Dtype, Operation, Rule


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
        keys = counted_to(operation, length_of(operation, key, 2))
        ends = operation.cast(mask, TensorProto.INT64)
        keep = operation.make("Less", keys, operation.reshape(operation.slice(ends, 0, 0, batch), [-1, 1]))
        if count == 2 * batch:
            begins = operation.reshape(operation.slice(ends, 0, batch, count), [-1, 1])
            keep = operation.make("And", keep, operation.make("GreaterOrEqual", keys, begins))
        keep = unsqueezed(operation, keep, 1, 2)
    else:
        zero = operation.constant(np.zeros((), operation.dtype(index)))
        keep = operation.make("Greater", mask, zero)
        if rank == 2:
            keep = unsqueezed(operation, keep, 1, 2)
        elif rank == 3:
            keep = unsqueezed(operation, keep, 1)
        else:
            keys, queries = length_of(operation, key, 2), length_of(operation, query, 2)
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
        later = operation.number(lowest_of(dtype), dtype)
        terms = [operation.make("Where", is_causal(operation, query, key), seen, later)]
    if operation.has(bias):
        terms.append(operation.inputs[bias])
    return terms


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
        split_heads(operation, operation.slice(projected, 2, int(begin), int(end)), heads)
        for begin, end in itertools.pairwise(bounds)
    )
    if operation.has(past):
        before = operation.inputs[past]
        key = with_past(operation, element_of(operation, before, 0, 0), key)
        value = with_past(operation, element_of(operation, before, 1, 0), value)
    if operation.wants(1):
        operation.finish(
            "Concat", unsqueezed(operation, key, 0), unsqueezed(operation, value, 0), output=1, axis=0
        )
    terms = _terms(operation, query, key, mask=mask, bias=bias, dtype=dtype)
    scale = scale_of(operation, sizes[0] // heads)
    result = _attend(operation, query, key, value, dtype=dtype, scale=scale, terms=terms)
    return operation.give(merge_heads(operation, result))


def _attention(operation: Operation) -> bool:
    refuse_attributes(operation, "do_rotary", "past_present_share_buffer")
    refuse_inputs(operation, past_sequence_length=6)
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
    refuse_attributes(operation, "do_rotary", "past_present_share_buffer")
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
    refuse_inputs(operation, past_sequence_length=8, cache_indirection=9)
    if operation.wants(3):
        operation.refuse("its output of scores is not supported", "export the model without it")
    query, key, value = _projections(operation)
    if operation.has(6):
        key = with_past(operation, operation.inputs[6], key)
        value = with_past(operation, operation.inputs[7], value)
    for output, present in ((1, key), (2, value)):
        if operation.wants(output):
            operation.give(present, output)
    dtype, heads = operation.dtype(0), operation.attribute("num_heads")
    shape = operation.shape(0)
    size = shape[4] if len(shape) == 5 else shape[2] // heads
    if shape[-1] < 0:
        operation.refuse("the size of its heads is not known", "declare the shape of its query")
    terms = _terms(operation, query, key, mask=4, bias=5, dtype=dtype)
    scale = scale_of(operation, size)
    result = _attend(operation, query, key, value, dtype=dtype, scale=scale, terms=terms)
    return operation.give(merge_heads(operation, result))


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
        parts = (element_of(operation, packed, index, 3) for index in range(3))
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
    query = split_heads(operation, inputs[0], heads)
    if ranks[1] == 5:
        key, value = (
            operation.transpose(element_of(operation, inputs[1], index, 3), [0, 2, 1, 3])
            for index in range(2)
        )
    elif ranks[1] == 4:
        key, value = inputs[1:3]
    else:
        key, value = (split_heads(operation, x, heads) for x in inputs[1:3])
    return query, key, value


RULES = (
    Rule("Attention", _attention, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("MultiHeadAttention", _multi_head_attention, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QAttention", _attention_of_bytes, UNSUPPORTED, domain=CONTRIB_DOMAIN),
)
