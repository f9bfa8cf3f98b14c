"""Transformer workloads, decomposed the way PyTorch's exporter decomposes them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.workloads.builder import (
    GraphBuilder,
    causal_mask,
    gelu_erf,
    gelu_tanh,
    layer_norm,
    linear,
    merge_heads,
    repeat_heads,
    rms_norm,
    rotary_tables,
    rotate,
    split_heads,
)


@dataclass(frozen=True, kw_only=True)
class BertOptions:
    """Sizes of a BERT encoder; the defaults are BERT-base at sequence length 128."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    sequence: int = 128
    batch: int = 1
    intermediate: int = 3072
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Gpt2Options:
    """Sizes of one GPT-2 block; the defaults are GPT-2 small at sequence length 128."""

    hidden: int = 768
    heads: int = 12
    sequence: int = 128
    batch: int = 1
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class LlamaOptions:
    """Sizes of one Llama block. `key_value_heads` below `heads` gives grouped-query attention."""

    hidden: int = 512
    heads: int = 8
    key_value_heads: int = 8
    sequence: int = 128
    batch: int = 1
    intermediate: int = 1376
    seed: int = 0


def bert(options: BertOptions = BertOptions()) -> onnx.ModelProto:
    """A BERT encoder after its embeddings: inputs `hidden_states` and the 0/1 `attention_mask`."""
    o = options
    g = GraphBuilder("bert", seed=o.seed)
    shape = (o.batch, o.sequence, o.hidden)
    x = g.input("hidden_states", shape)
    mask = g.input("attention_mask", (o.batch, o.sequence), TensorProto.INT64)
    additive = _additive_mask(g, mask)
    for _ in range(o.layers):
        x = _bert_layer(g, x, additive, o)
    g.output(x, shape)
    return g.build()


def gpt2_block(options: Gpt2Options = Gpt2Options()) -> onnx.ModelProto:
    """One pre-norm GPT-2 block: fused qkv projection and Split, causal mask, tanh Gelu."""
    o = options
    head_size = o.hidden // o.heads
    g = GraphBuilder("gpt2_block", seed=o.seed)
    shape = (o.batch, o.sequence, o.hidden)
    x = g.input("hidden_states", shape)

    normed = layer_norm(g, x, o.hidden)
    qkv = _conv1d(g, normed, o.hidden, 3 * o.hidden, batch=o.batch, sequence=o.sequence)
    parts = g.ops("Split", qkv, g.ints([o.hidden] * 3), results=3, axis=2)
    query, key, value = (
        split_heads(g, part, batch=o.batch, sequence=o.sequence, heads=o.heads, head_size=head_size)
        for part in parts
    )
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g.op("Add", g.op("Div", scores, g.scalar(math.sqrt(head_size))), causal_mask(g, o.sequence))
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    context = merge_heads(g, context, batch=o.batch, sequence=o.sequence, hidden=o.hidden)
    x = g.op("Add", _conv1d(g, context, o.hidden, o.hidden, batch=o.batch, sequence=o.sequence), x)

    normed = layer_norm(g, x, o.hidden)
    inner = _conv1d(g, normed, o.hidden, 4 * o.hidden, batch=o.batch, sequence=o.sequence)
    outer = _conv1d(g, gelu_tanh(g, inner), 4 * o.hidden, o.hidden, batch=o.batch, sequence=o.sequence)
    g.output(g.op("Add", x, outer), shape)
    return g.build()


def llama_block(options: LlamaOptions = LlamaOptions()) -> onnx.ModelProto:
    """One Llama block: RMS norm, rotary embedding, (grouped-query) causal attention, SwiGLU."""
    o = options
    head_size = o.hidden // o.heads
    g = GraphBuilder("llama_block", seed=o.seed)
    shape = (o.batch, o.sequence, o.hidden)
    x = g.input("hidden_states", shape)
    cosine, sine = rotary_tables(g, sequence=o.sequence, head_size=head_size, rank=4)

    def project(source: str, heads: int) -> str:
        flat = linear(g, source, o.hidden, heads * head_size, bias=False)
        return split_heads(g, flat, batch=o.batch, sequence=o.sequence, heads=heads, head_size=head_size)

    normed = rms_norm(g, x, o.hidden)
    query = rotate(g, project(normed, o.heads), cosine, sine, head_size=head_size, axis=3)
    key = rotate(g, project(normed, o.key_value_heads), cosine, sine, head_size=head_size, axis=3)
    value = project(normed, o.key_value_heads)
    if o.key_value_heads != o.heads:
        narrow = (o.batch, o.key_value_heads, o.sequence, head_size)
        group = o.heads // o.key_value_heads
        key, value = (repeat_heads(g, x, shape=narrow, group=group) for x in (key, value))
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g.op(
        "Add", g.op("Mul", scores, g.scalar(1.0 / math.sqrt(head_size))), causal_mask(g, o.sequence)
    )
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    context = merge_heads(g, context, batch=o.batch, sequence=o.sequence, hidden=o.hidden)
    x = g.op("Add", x, linear(g, context, o.hidden, o.hidden, bias=False))

    normed = rms_norm(g, x, o.hidden)
    gate = linear(g, normed, o.hidden, o.intermediate, bias=False)
    up = linear(g, normed, o.hidden, o.intermediate, bias=False)
    silu = g.op("Mul", gate, g.op("Sigmoid", gate))
    down = linear(g, g.op("Mul", silu, up), o.intermediate, o.hidden, bias=False)
    g.output(g.op("Add", x, down), shape)
    return g.build()


def _additive_mask(g: GraphBuilder, mask: str) -> str:
    """[batch, sequence] of 0/1 to [batch, 1, 1, sequence] of lowest f32/0."""
    broadcast = g.op("Unsqueeze", mask, g.ints([1, 2]))
    ignored = g.op("Sub", g.scalar(1.0), g.op("Cast", broadcast, to=TensorProto.FLOAT))
    return g.op("Mul", ignored, g.scalar(float(np.finfo(np.float32).min)))


def _bert_layer(g: GraphBuilder, x: str, additive_mask: str, o: BertOptions) -> str:
    head_size = o.hidden // o.heads

    def project(perm: list[int]) -> str:
        flat = linear(g, x, o.hidden, o.hidden)
        heads = g.op("Reshape", flat, g.ints([o.batch, o.sequence, o.heads, head_size]))
        return g.op("Transpose", heads, perm=perm)

    query, key, value = project([0, 2, 1, 3]), project([0, 2, 3, 1]), project([0, 2, 1, 3])
    scores = g.op("Div", g.op("MatMul", query, key), g.scalar(math.sqrt(head_size)))
    weights = g.op("Softmax", g.op("Add", scores, additive_mask), axis=-1)
    context = merge_heads(
        g, g.op("MatMul", weights, value), batch=o.batch, sequence=o.sequence, hidden=o.hidden
    )
    attended = g.op("Add", linear(g, context, o.hidden, o.hidden), x)
    x = layer_norm(g, attended, o.hidden, epsilon=1e-12)

    inner = gelu_erf(g, linear(g, x, o.hidden, o.intermediate))
    return layer_norm(g, g.op("Add", linear(g, inner, o.intermediate, o.hidden), x), o.hidden, epsilon=1e-12)


def _conv1d(g: GraphBuilder, x: str, fan_in: int, fan_out: int, *, batch: int, sequence: int) -> str:
    """GPT-2's Conv1D, which exports as Reshape, Gemm, Reshape."""
    flat = g.op("Reshape", x, g.ints([-1, fan_in]))
    product = g.op(
        "Gemm", flat, g.weight((fan_in, fan_out), fan_in=fan_in), g.vector(fan_out), alpha=1.0, beta=1.0
    )
    return g.op("Reshape", product, g.ints([batch, sequence, fan_out]))
