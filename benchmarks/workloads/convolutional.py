"""A small residual CNN: stem, two residual stages, global average pool, classifier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.workloads.builder import GraphBuilder


@dataclass(frozen=True, kw_only=True)
class CnnOptions:
    """Sizes of the CNN; `image` is the side of the square input in pixels."""

    image: int = 32
    channels: int = 16
    classes: int = 10
    batch: int = 1
    seed: int = 0


def cnn(options: CnnOptions = CnnOptions()) -> onnx.ModelProto:
    """conv/affine/relu/maxpool stem, a plain and a strided residual stage, global average pool and Gemm."""
    o = options
    g = GraphBuilder("cnn", seed=o.seed)
    x = g.input("image", (o.batch, 3, o.image, o.image))
    x = g.op("Relu", _affine(g, _conv(g, x, 3, o.channels, kernel=3), o.channels))
    x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = _residual(g, x, o.channels, o.channels, stride=1)
    x = _residual(g, x, o.channels, 2 * o.channels, stride=2)
    pooled = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    weight = g.weight((o.classes, 2 * o.channels), fan_in=2 * o.channels)
    g.output(g.op("Gemm", pooled, weight, g.vector(o.classes), transB=1), (o.batch, o.classes))
    return g.build()


def _conv(g: GraphBuilder, x: str, channels: int, filters: int, *, kernel: int, stride: int = 1) -> str:
    # Twice the variance of a linear layer: the relu before (or after) it drops half the signal.
    fan_in = channels * kernel * kernel / 2
    weight = g.weight((filters, channels, kernel, kernel), fan_in=max(1, int(fan_in)))
    pad = kernel // 2
    return g.op(
        "Conv", x, weight, g.vector(filters), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4
    )


def _affine(g: GraphBuilder, x: str, channels: int) -> str:
    """An inference-time batch normalisation: scale and shift per channel."""
    scale = 1.0 + 0.1 * g.rng.standard_normal((1, channels, 1, 1), dtype=np.float32)
    shift = 0.1 * g.rng.standard_normal((1, channels, 1, 1), dtype=np.float32)
    scaled = g.op("Mul", x, g.constant(scale.astype(np.float32), "gain"))
    return g.op("Add", scaled, g.constant(shift.astype(np.float32), "bias"))


def _residual(g: GraphBuilder, x: str, channels: int, filters: int, *, stride: int) -> str:
    main = g.op("Relu", _affine(g, _conv(g, x, channels, filters, kernel=3, stride=stride), filters))
    main = _affine(g, _conv(g, main, filters, filters, kernel=3), filters)
    shortcut = x
    if stride != 1 or channels != filters:
        shortcut = _affine(g, _conv(g, x, channels, filters, kernel=1, stride=stride), filters)
    # Halving the sum keeps the variance of the two branches together at one.
    return g.op("Relu", g.op("Mul", g.op("Add", main, shortcut), g.scalar(2.0**-0.5)))
