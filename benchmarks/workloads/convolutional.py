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
    """Builds a conv/affine/relu/maxpool stem, a plain and a strided residual stage, global average pool and Gemm."""
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
    # The variance is twice that of a linear layer, because the relu before (or after) it drops half of the signal.
    fan_in = channels * kernel * kernel / 2
    weight = g.weight((filters, channels, kernel, kernel), fan_in=max(1, int(fan_in)))
    pad = kernel // 2
    return g.op(
        "Conv", x, weight, g.vector(filters), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4
    )


def _affine(g: GraphBuilder, x: str, channels: int) -> str:
    """Adds an inference-time batch normalisation: scale and shift per channel."""
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


@dataclass(frozen=True, kw_only=True)
class ConvolutionOptions:
    """One convolution. `image` is the input's size in each of its `rank` dims; `groups` 0 means one filter per
    channel."""

    channels: int
    filters: int
    kernel: int
    stride: int = 1
    groups: int = 1
    rank: int = 2
    image: int = 28
    is_transposed: bool = False
    seed: int = 0


def convolution(options: ConvolutionOptions) -> onnx.ModelProto:
    """Builds a single Conv or ConvTranspose with a bias, padded by half the kernel."""
    o = options
    groups = o.groups or o.channels
    g = GraphBuilder("convolution", seed=o.seed)
    x = g.input("image", (1, o.channels, *[o.image] * o.rank))
    kernel, pad = [o.kernel] * o.rank, o.kernel // 2
    shape = (o.channels, o.filters // groups) if o.is_transposed else (o.filters, o.channels // groups)
    weight = g.weight((*shape, *kernel), fan_in=o.channels // groups * o.kernel**o.rank)
    y = g.op(
        "ConvTranspose" if o.is_transposed else "Conv", x, weight, g.vector(o.filters),
        group=groups, kernel_shape=kernel, pads=[pad] * 2 * o.rank, strides=[o.stride] * o.rank,
    )  # fmt: skip
    size = (o.image + 2 * pad - o.kernel) // o.stride + 1
    if o.is_transposed:
        size = (o.image - 1) * o.stride + o.kernel - 2 * pad
    g.output(y, (1, o.filters, *[size] * o.rank))
    return g.build()


@dataclass(frozen=True, kw_only=True)
class ConvolutionChainOptions:
    """Two convolutions in a row, with the names of Chimera's table V; `image` is the side of the first input."""

    channels: int
    image: int
    filters: tuple[int, int]
    strides: tuple[int, int]
    kernels: tuple[int, int]
    has_relu: bool = False
    seed: int = 0


def convolution_chain(options: ConvolutionChainOptions) -> onnx.ModelProto:
    """Builds conv, relu if it has one, and conv, both padded by half of their kernels."""
    o = options
    g = GraphBuilder("convolution-chain", seed=o.seed)
    x, channels, size = g.input("image", (1, o.channels, o.image, o.image)), o.channels, o.image
    for number, (filters, stride, kernel) in enumerate(zip(o.filters, o.strides, o.kernels, strict=True)):
        x = _conv(g, x, channels, filters, kernel=kernel, stride=stride)
        if o.has_relu and number == 0:
            x = g.op("Relu", x)
        channels, size = filters, (size + kernel // 2 * 2 - kernel) // stride + 1
    g.output(x, (1, channels, size, size))
    return g.build()


def operators_of(options: ConvolutionChainOptions) -> list[onnx.ModelProto]:
    """Builds one model for each operator of a chain, in order."""
    o, models = options, []
    channels, size = o.channels, o.image
    for number, (filters, stride, kernel) in enumerate(zip(o.filters, o.strides, o.kernels, strict=True)):
        g = GraphBuilder(f"convolution-{number}", seed=o.seed)
        x = g.input("x", (1, channels, size, size))
        y = _conv(g, x, channels, filters, kernel=kernel, stride=stride)
        channels, size = filters, (size + kernel // 2 * 2 - kernel) // stride + 1
        g.output(y, (1, channels, size, size))
        models.append(g.build())
        if o.has_relu and number == 0:
            g = GraphBuilder("relu")
            g.output(g.op("Relu", g.input("x", (1, channels, size, size))), (1, channels, size, size))
            models.append(g.build())
    return models


def pooling(op: str, channels: int, image: int, *, kernel: int, stride: int) -> onnx.ModelProto:
    """Builds a single MaxPool or AveragePool, or GlobalAveragePool, which has neither kernel nor stride."""
    g = GraphBuilder("pooling")
    x = g.input("image", (1, channels, image, image))
    if op == "GlobalAveragePool":
        g.output(g.op(op, x), (1, channels, 1, 1))
        return g.build()
    pad = kernel // 2 if kernel % 2 else 0
    size = (image + 2 * pad - kernel) // stride + 1
    y = g.op(op, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
    g.output(y, (1, channels, size, size))
    return g.build()


@dataclass(frozen=True, kw_only=True)
class BottleneckOptions:
    """Sizes of a ResNet of bottlenecks or, with more than one group, of a ResNeXt; `widths` has one entry per stage."""

    image: int = 64
    widths: tuple[int, ...] = (32, 64)
    expansion: int = 4
    groups: int = 1
    classes: int = 10
    seed: int = 0


def bottlenecks(options: BottleneckOptions = BottleneckOptions()) -> onnx.ModelProto:
    """Builds a conv 7x7/max pool stem, two bottlenecks per stage, the first of which strides, average pool and Gemm."""
    o = options
    g = GraphBuilder("bottlenecks", seed=o.seed)
    channels = o.widths[0]
    x = g.input("image", (1, 3, o.image, o.image))
    x = g.op("Relu", _normal_conv(g, x, 3, channels, kernel=7, stride=2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, width in enumerate(o.widths):
        for stride in (min(stage + 1, 2), 1):
            x = _bottleneck(g, x, channels, width, stride=stride, options=o)
            channels = width * o.expansion
    pooled = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    weight = g.weight((o.classes, channels), fan_in=channels)
    g.output(g.op("Gemm", pooled, weight, g.vector(o.classes), transB=1), (1, o.classes))
    return g.build()


def _bottleneck(
    g: GraphBuilder, x: str, channels: int, width: int, *, stride: int, options: BottleneckOptions
) -> str:
    filters = width * options.expansion
    main = g.op("Relu", _normal_conv(g, x, channels, width))
    main = g.op("Relu", _normal_conv(g, main, width, width, kernel=3, stride=stride, groups=options.groups))
    main = _normal_conv(g, main, width, filters)
    if stride != 1 or channels != filters:
        x = _normal_conv(g, x, channels, filters, stride=stride)
    return g.op("Relu", g.op("Mul", g.op("Add", main, x), g.scalar(2.0**-0.5)))


@dataclass(frozen=True, kw_only=True)
class InvertedOptions:
    """Sizes of a MobileNetV2: filters and stride of each inverted residual."""

    image: int = 64
    stem: int = 16
    blocks: tuple[tuple[int, int], ...] = ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1))
    expansion: int = 6
    classes: int = 10
    seed: int = 0


def inverted_residuals(options: InvertedOptions = InvertedOptions()) -> onnx.ModelProto:
    """Builds a conv 3x3 stem, expand/depthwise/project blocks with ReLU6, average pool and Gemm."""
    o = options
    g = GraphBuilder("inverted-residuals", seed=o.seed)
    x = g.input("image", (1, 3, o.image, o.image))
    x = _relu6(g, _normal_conv(g, x, 3, o.stem, kernel=3, stride=2))
    channels = o.stem
    for filters, stride in o.blocks:
        wide = channels * o.expansion
        main = _relu6(g, _normal_conv(g, x, channels, wide))
        main = _relu6(g, _normal_conv(g, main, wide, wide, kernel=3, stride=stride, groups=wide))
        main = _normal_conv(g, main, wide, filters)
        x = g.op("Add", main, x) if stride == 1 and channels == filters else main
        channels = filters
    pooled = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    weight = g.weight((o.classes, channels), fan_in=channels)
    g.output(g.op("Gemm", pooled, weight, g.vector(o.classes), transB=1), (1, o.classes))
    return g.build()


def _relu6(g: GraphBuilder, x: str) -> str:
    return g.op("Clip", x, g.scalar(0.0), g.scalar(6.0))


def _normal_conv(
    g: GraphBuilder, x: str, channels: int, filters: int, *, kernel: int = 1, stride: int = 1, groups: int = 1
) -> str:
    """Adds a convolution with its batch normalisation folded in, as exporters leave it."""
    fan_in = channels // groups * kernel * kernel / 2  # the relu before it drops half of the signal
    weight = g.weight((filters, channels // groups, kernel, kernel), fan_in=max(1, int(fan_in)))
    return g.op(
        "Conv", x, weight, g.vector(filters),
        group=groups, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, strides=[stride] * 2,
    )  # fmt: skip
