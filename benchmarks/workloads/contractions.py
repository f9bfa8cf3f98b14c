"""Single contractions and chains: matmuls with constant and with given matrices, Chimera's GEMM chains, attention."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx

from benchmarks.workloads.builder import GraphBuilder, causal_mask, repeat_heads


def dense(rows: int, fan_in: int, fan_out: int) -> onnx.ModelProto:
    """Builds x @ weights."""
    g = GraphBuilder("dense")
    x = g.input("x", (rows, fan_in))
    g.output(g.op("MatMul", x, g.weight((fan_in, fan_out), fan_in=fan_in)), (rows, fan_out))
    return g.build()


def matmul(rows: int, inner: int, columns: int) -> onnx.ModelProto:
    """Builds a @ b, both given."""
    g = GraphBuilder("matmul")
    a, b = g.input("a", (rows, inner)), g.input("b", (inner, columns))
    g.output(g.op("MatMul", a, b), (rows, columns))
    return g.build()


@dataclass(frozen=True, kw_only=True)
class ChainOptions:
    """Sizes of a chain as in Chimera's table IV: (batch, m, k) x (batch, k, l), then (batch, m, l) x (batch, l, n)."""

    batch: int
    m: int
    n: int
    k: int
    l: int  # noqa: E741 - the paper's name


def gemm_chain(o: ChainOptions) -> onnx.ModelProto:
    """Builds (a @ b) @ d."""
    g = GraphBuilder("gemm_chain")
    a, b = g.input("a", (o.batch, o.m, o.k)), g.input("b", (o.batch, o.k, o.l))
    d = g.input("d", (o.batch, o.l, o.n))
    g.output(g.op("MatMul", g.op("MatMul", a, b), d), (o.batch, o.m, o.n))
    return g.build()


def softmax_chain(o: ChainOptions) -> onnx.ModelProto:
    """Builds softmax(query @ keyᵀ / √k) @ value, which is the same chain with a softmax in between."""
    g = GraphBuilder("softmax_chain")
    query, key = g.input("query", (o.batch, o.m, o.k)), g.input("key", (o.batch, o.l, o.k))
    value = g.input("value", (o.batch, o.l, o.n))
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 2, 1]))
    weights = g.op("Softmax", g.op("Mul", scores, g.scalar(1 / math.sqrt(o.k))), axis=-1)
    g.output(g.op("MatMul", weights, value), (o.batch, o.m, o.n))
    return g.build()


@dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """Sizes of an attention; if `key_value_heads` is below `heads`, query heads are grouped."""

    heads: int
    key_value_heads: int
    sequence: int
    head_size: int
    is_causal: bool = False


def attention(o: AttentionOptions) -> onnx.ModelProto:
    """Builds softmax(query @ keyᵀ / √head_size + mask) @ value per head."""
    g = GraphBuilder("attention")
    query = g.input("query", (1, o.heads, o.sequence, o.head_size))
    shape = (1, o.key_value_heads, o.sequence, o.head_size)
    key, value = (
        repeat_heads(g, g.input(name, shape), shape=shape, group=o.heads // o.key_value_heads)
        for name in ("key", "value")
    )
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g.op("Mul", scores, g.scalar(1 / math.sqrt(o.head_size)))
    if o.is_causal:
        scores = g.op("Add", scores, causal_mask(g, o.sequence))
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    g.output(context, (1, o.heads, o.sequence, o.head_size))
    return g.build()
