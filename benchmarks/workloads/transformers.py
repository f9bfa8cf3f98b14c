"""Transformer workloads, decomposed the way PyTorch's exporter decomposes them."""

from __future__ import annotations

import math
from collections.abc import Callable
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
class DecodeOptions:
    """Sizes of a decode step; the defaults are GPT-2 small with room for 1024 tokens."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    maximum: int = 1024
    batch: int = 1
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class LlamaOptions:
    """Sizes of one Llama block. If `key_value_heads` is below `heads`, query heads are grouped."""

    hidden: int = 512
    heads: int = 8
    key_value_heads: int = 8
    sequence: int = 128
    batch: int = 1
    intermediate: int = 1376
    seed: int = 0


def bert(options: BertOptions = BertOptions()) -> onnx.ModelProto:
    """Builds a BERT encoder after its embeddings, with inputs `hidden_states` and the 0/1 `attention_mask`."""
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
    """Builds one pre-norm GPT-2 block: fused qkv projection and Split, causal mask, tanh Gelu."""
    return gpt2(options, layers=1, final_norm=False, name="gpt2_block")


def gpt2(
    options: Gpt2Options = Gpt2Options(), *, layers: int = 12, final_norm: bool = True, name: str = "gpt2"
) -> onnx.ModelProto:
    """Builds GPT-2 on a prompt, after its embeddings and before its vocabulary."""
    o = options
    g = GraphBuilder(name, seed=o.seed)
    shape = (o.batch, o.sequence, o.hidden)
    x = g.input("hidden_states", shape)
    mask = causal_mask(g, o.sequence)
    for _ in range(layers):
        x = _gpt2_layer(g, x, o, lambda keys, values: (keys, values, mask))
    g.output(layer_norm(g, x, o.hidden) if final_norm else x, shape)
    return g.build()


def gpt2_decode(options: DecodeOptions = DecodeOptions()) -> onnx.ModelProto:
    """Builds GPT-2 on one more token.

    Each layer writes its keys and values at `position` of its two caches, which are inputs and outputs [batch, heads,
    maximum, head size]; attention reads the caches up to there.
    """
    o = options
    g = GraphBuilder("gpt2_decode", seed=o.seed)
    x = g.input("hidden_states", (o.batch, 1, o.hidden))
    position = g.input("position", (1,), TensorProto.INT64)
    row = (o.batch, o.heads, 1, o.hidden // o.heads)
    cache = (o.batch, o.heads, o.maximum, o.hidden // o.heads)
    place = g.op("Expand", g.op("Reshape", position, g.ints([1, 1, 1, 1])), g.ints(row))
    tokens = g.constant(np.arange(o.maximum, dtype=np.int64).reshape(1, 1, 1, -1), "tokens")
    is_past = g.op("LessOrEqual", tokens, position)
    mask = g.op("Where", is_past, g.scalar(0.0), g.scalar(float(np.finfo(np.float32).min)))
    caches: list[str] = []

    def extend(keys: str, values: str) -> tuple[str, str, str]:
        for kind, new in (("keys", keys), ("values", values)):
            past = g.input(f"past_{kind}_{len(caches) // 2}", cache)
            caches.append(g.op("ScatterElements", past, place, new, axis=2))
        return caches[-2], caches[-1], mask

    layer = Gpt2Options(hidden=o.hidden, heads=o.heads, sequence=1, batch=o.batch)
    for _ in range(o.layers):
        x = _gpt2_layer(g, x, layer, extend)
    g.output(layer_norm(g, x, o.hidden), (o.batch, 1, o.hidden))
    for extended in caches:
        g.output(extended, cache)
    return g.build()


def state_of(decode: onnx.ModelProto) -> dict[str, str]:
    """Returns those outputs of a decode step that continue inputs."""
    past = [value.name for value in decode.graph.input if value.name.startswith("past_")]
    return dict(zip([value.name for value in decode.graph.output[1:]], past, strict=True))


def llama_block(options: LlamaOptions = LlamaOptions()) -> onnx.ModelProto:
    """Builds one Llama block: RMS norm, rotary embedding, (grouped-query) causal attention, SwiGLU."""
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
    """Turns a 0/1 mask [batch, sequence] into an additive one [batch, 1, 1, sequence] of the lowest f32 and 0."""
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


def _gpt2_layer(
    g: GraphBuilder, x: str, o: Gpt2Options, extend: Callable[[str, str], tuple[str, str, str]]
) -> str:
    """Adds a pre-norm layer; `extend` maps its keys and values to those that are attended to, and their mask."""
    head_size = o.hidden // o.heads
    normed = layer_norm(g, x, o.hidden)
    qkv = _conv1d(g, normed, o.hidden, 3 * o.hidden, batch=o.batch, sequence=o.sequence)
    parts = g.ops("Split", qkv, g.ints([o.hidden] * 3), results=3, axis=2)
    query, key, value = (
        split_heads(g, part, batch=o.batch, sequence=o.sequence, heads=o.heads, head_size=head_size)
        for part in parts
    )
    key, value, mask = extend(key, value)
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g.op("Add", g.op("Div", scores, g.scalar(math.sqrt(head_size))), mask)
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    context = merge_heads(g, context, batch=o.batch, sequence=o.sequence, hidden=o.hidden)
    x = g.op("Add", _conv1d(g, context, o.hidden, o.hidden, batch=o.batch, sequence=o.sequence), x)

    normed = layer_norm(g, x, o.hidden)
    inner = _conv1d(g, normed, o.hidden, 4 * o.hidden, batch=o.batch, sequence=o.sequence)
    outer = _conv1d(g, gelu_tanh(g, inner), 4 * o.hidden, o.hidden, batch=o.batch, sequence=o.sequence)
    return g.op("Add", x, outer)


def _conv1d(g: GraphBuilder, x: str, fan_in: int, fan_out: int, *, batch: int, sequence: int) -> str:
    """Adds GPT-2's Conv1D, which exports as Reshape, Gemm, Reshape."""
    flat = g.op("Reshape", x, g.ints([-1, fan_in]))
    product = g.op(
        "Gemm", flat, g.weight((fan_in, fan_out), fan_in=fan_in), g.vector(fan_out), alpha=1.0, beta=1.0
    )
    return g.op("Reshape", product, g.ints([batch, sequence, fan_out]))
