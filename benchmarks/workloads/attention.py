"""Multi-head self-attention as in vision and speech encoders: one projection to queries, keys and values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx

from benchmarks.workloads.builder import GraphBuilder, linear, merge_heads, split_heads


def self_attention(
    g: GraphBuilder, x: str, *, batch: int, sequence: int, hidden: int, heads: int, biases: Sequence[str] = ()
) -> str:
    """Adds self-attention on [batch, sequence, hidden]; `biases` are added to the scores."""
    head_size = hidden // heads
    parts = g.ops("Split", linear(g, x, hidden, 3 * hidden), g.ints([hidden] * 3), results=3, axis=2)
    query, key, value = (
        split_heads(g, part, batch=batch, sequence=sequence, heads=heads, head_size=head_size)
        for part in parts
    )
    scaled = g.op("Mul", query, g.scalar(1.0 / math.sqrt(head_size)))
    scores = g.op("MatMul", scaled, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    for bias in biases:
        scores = g.op("Add", scores, bias)
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    merged = merge_heads(g, context, batch=batch, sequence=sequence, hidden=hidden)
    return linear(g, merged, hidden, hidden)


def windows(count: int, *, hidden: int = 96, heads: int = 3) -> onnx.ModelProto:
    """Builds attention inside windows of 49 points, which multiplies with transposed keys."""
    g = GraphBuilder("windows")
    shape = (count, 49, hidden)
    bias = g.weight((1, heads, 49, 49), fan_in=4)
    x = g.input("x", shape)
    g.output(self_attention(g, x, batch=count, sequence=49, hidden=hidden, heads=heads, biases=[bias]), shape)
    return g.build()
