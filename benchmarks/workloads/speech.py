"""Speech models: a Conformer block, which is two half feed-forward layers around self-attention and a convolution
module, and a recogniser with LSTM layers."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from benchmarks.workloads.attention import self_attention
from benchmarks.workloads.builder import GraphBuilder, layer_norm, linear, silu
from benchmarks.workloads.recurrent import RecurrentOptions, recurrent_layers


@dataclass(frozen=True, kw_only=True)
class ConformerOptions:
    """Sizes of a block; the defaults are Conformer (M) on 256 frames."""

    hidden: int = 256
    heads: int = 4
    sequence: int = 256
    kernel: int = 31
    has_convolution: bool = True
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class RecogniserOptions:
    """Sizes of a small Deep Speech 2: frames of a spectrogram to log-probabilities of letters."""

    bands: int = 80
    frames: int = 200
    kernel: int = 11
    layers: int = 3
    hidden: int = 256
    letters: int = 29
    seed: int = 0


def conformer_block(options: ConformerOptions = ConformerOptions()) -> onnx.ModelProto:
    o = options
    g = GraphBuilder("conformer_block", seed=o.seed)
    shape = (1, o.sequence, o.hidden)
    x = g.input("frames", shape)
    x = _half_feed_forward(g, x, o.hidden)
    normed = layer_norm(g, x, o.hidden)
    x = g.op(
        "Add", x, self_attention(g, normed, batch=1, sequence=o.sequence, hidden=o.hidden, heads=o.heads)
    )
    if o.has_convolution:
        x = g.op("Add", x, _convolution(g, layer_norm(g, x, o.hidden), o))
    x = _half_feed_forward(g, x, o.hidden)
    g.output(layer_norm(g, x, o.hidden), shape)
    return g.build()


def _half_feed_forward(g: GraphBuilder, x: str, hidden: int) -> str:
    inner = silu(g, linear(g, layer_norm(g, x, hidden), hidden, 4 * hidden))
    return g.op("Add", x, g.op("Mul", linear(g, inner, 4 * hidden, hidden), g.scalar(0.5)))


def _convolution(g: GraphBuilder, x: str, o: ConformerOptions) -> str:
    """Adds a pointwise gated linear unit, a depthwise convolution over time, a folded batch norm, silu, and
    pointwise."""
    doubled = linear(g, x, o.hidden, 2 * o.hidden)
    value, gate = g.ops("Split", doubled, g.ints([o.hidden] * 2), results=2, axis=2)
    gated = g.op("Transpose", g.op("Mul", value, g.op("Sigmoid", gate)), perm=[0, 2, 1])
    weight = g.weight((o.hidden, 1, o.kernel), fan_in=o.kernel)
    pads = [o.kernel // 2] * 2
    mixed = g.op("Conv", gated, weight, kernel_shape=[o.kernel], pads=pads, group=o.hidden)
    frames = g.op("Transpose", mixed, perm=[0, 2, 1])
    scaled = g.op("Add", g.op("Mul", frames, g.vector(o.hidden, mean=1.0, hint="gain")), g.vector(o.hidden))
    return linear(g, silu(g, scaled), o.hidden, o.hidden)


def recogniser(options: RecogniserOptions = RecogniserOptions()) -> onnx.ModelProto:
    """Builds a convolution over time that takes every second frame, LSTM layers in both directions, and a classifier
    of each step."""
    o = options
    g = GraphBuilder("recogniser", seed=o.seed)
    frames = g.input("frames", (1, o.bands, o.frames))
    weight = g.weight((o.hidden, o.bands, o.kernel), fan_in=o.bands * o.kernel)
    mixed = g.op(
        "Conv",
        frames,
        weight,
        g.vector(o.hidden),
        kernel_shape=[o.kernel],
        pads=[o.kernel // 2] * 2,
        strides=[2],
    )
    clipped = g.op("Clip", mixed, g.scalar(0.0), g.scalar(20.0))
    steps = (o.frames + 1) // 2
    layers = RecurrentOptions(layers=o.layers, steps=steps, hidden=o.hidden, is_bidirectional=True)
    x, width = recurrent_layers(g, g.op("Transpose", clipped, perm=[2, 0, 1]), o.hidden, layers)
    g.output(g.op("LogSoftmax", linear(g, x, width, o.letters), axis=-1), (steps, 1, o.letters))
    return g.build()
