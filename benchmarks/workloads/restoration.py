"""One level of each network that restores images, as their papers define it, with random weights.

All take f32 feature maps of shape (1, channels, size, size), channels first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx

from benchmarks.workloads.builder import GraphBuilder, gelu_erf
from benchmarks.workloads.networks import (
    Image,
    activated,
    add,
    classify,
    concat,
    conv,
    finish,
    image_input,
    max_pool,
    squeeze_and_excite,
)

_GAIN_OF_BRANCH = 0.25
"""Factor on the last weights of a residual branch, so that sums of many branches stay of the order of one."""


def _gelu(g: GraphBuilder, x: Image) -> Image:
    return replace(x, value=gelu_erf(g, x.value))


def _halves(g: GraphBuilder, x: Image) -> tuple[Image, Image]:
    half = x.channels // 2
    first, second = g.ops("Split", x.value, g.ints([half, half]), results=2, axis=1)
    return replace(x, value=first, channels=half), replace(x, value=second, channels=half)


def _scaled(g: GraphBuilder, x: Image, by: str) -> Image:
    return replace(x, value=g.op("Mul", x.value, by))


def _norm_of_channels(g: GraphBuilder, x: Image) -> Image:
    """Adds a layer normalisation over the channels of each point."""
    centred = g.op("Sub", x.value, g.op("ReduceMean", x.value, axes=[1], keepdims=1))
    variance = g.op("ReduceMean", g.op("Mul", centred, centred), axes=[1], keepdims=1)
    normal = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.scalar(1e-6))))
    gain, shift = (
        g.op("Reshape", g.vector(x.channels, mean=mean), g.ints([-1, 1, 1])) for mean in (1.0, 0.0)
    )
    return replace(x, value=g.op("Add", g.op("Mul", normal, gain), shift))


# NAFNet


def nafnet_level(channels: int = 64, size: int = 128, blocks: int = 2) -> onnx.ModelProto:
    """Builds blocks of NAFNet: gates instead of activations, and a simplified channel attention."""
    g = GraphBuilder("nafnet-level")
    x = image_input(g, size, channels)
    for _ in range(blocks):
        wide = conv(g, _norm_of_channels(g, x), 2 * channels, kernel=1)
        gated = _gate(g, conv(g, wide, 2 * channels, groups=2 * channels))
        pooled = Image(value=g.op("GlobalAveragePool", gated.value), channels=channels, size=1)
        gated = _scaled(g, gated, conv(g, pooled, channels, kernel=1).value)
        x = add(g, x, conv(g, gated, channels, kernel=1, gain=_GAIN_OF_BRANCH))
        gated = _gate(g, conv(g, _norm_of_channels(g, x), 2 * channels, kernel=1))
        x = add(g, x, conv(g, gated, channels, kernel=1, gain=_GAIN_OF_BRANCH))
    return finish(g, x)


def _gate(g: GraphBuilder, x: Image) -> Image:
    first, second = _halves(g, x)
    return replace(first, value=g.op("Mul", first.value, second.value))


# Restormer


def restormer_level(channels: int = 48, size: int = 64, heads: int = 1, blocks: int = 2) -> onnx.ModelProto:
    """Builds blocks of Restormer: attention between channels, and a gated depthwise network."""
    g = GraphBuilder("restormer-level")
    x = image_input(g, size, channels)
    for _ in range(blocks):
        x = add(g, x, _channel_attention(g, _norm_of_channels(g, x), heads))
        hidden = int(2.66 * channels)
        wide = conv(g, _norm_of_channels(g, x), 2 * hidden, kernel=1)
        first, second = _halves(g, conv(g, wide, 2 * hidden, groups=2 * hidden))
        gated = _scaled(g, _gelu(g, first), second.value)
        x = add(g, x, conv(g, gated, channels, kernel=1, gain=_GAIN_OF_BRANCH))
    return finish(g, x)


def _channel_attention(g: GraphBuilder, x: Image, heads: int) -> Image:
    channels, points = x.channels, x.size**2
    mixed = conv(g, conv(g, x, 3 * channels, kernel=1), 3 * channels, groups=3 * channels)
    parts = g.ops("Split", mixed.value, g.ints([channels] * 3), results=3, axis=1)
    query, key, value = (
        g.op("Reshape", part, g.ints([1, heads, channels // heads, points])) for part in parts
    )
    query, key = (g.op("Div", rows, g.op("ReduceL2", rows, axes=[3], keepdims=1)) for rows in (query, key))
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    temperature = g.op("Reshape", g.vector(heads, mean=1.0), g.ints([heads, 1, 1]))
    weights = g.op("Softmax", g.op("Mul", scores, temperature), axis=-1)
    context = g.op("Reshape", g.op("MatMul", weights, value), g.ints(x.shape))
    return conv(g, replace(x, value=context), channels, kernel=1, gain=_GAIN_OF_BRANCH)


# BSRN


def bsrn_level(channels: int = 64, size: int = 64) -> onnx.ModelProto:
    """Builds one block of BSRN: separable convolutions that distil, and attention to points and to channels."""
    g = GraphBuilder("bsrn-level")
    x = image_input(g, size, channels)
    distilled, rest = [], x
    for _ in range(3):
        distilled.append(_gelu(g, conv(g, rest, channels // 2, kernel=1)))
        rest = _gelu(g, add(g, _separable(g, rest, channels), rest))
    distilled.append(_gelu(g, _separable(g, rest, channels // 2)))
    joined = conv(g, concat(g, distilled), channels, kernel=1)
    attended = _contrast_attention(g, _spatial_attention(g, joined))
    return finish(g, add(g, attended, x))


def _separable(g: GraphBuilder, x: Image, filters: int, *, act: str = "none") -> Image:
    return conv(g, conv(g, x, filters, kernel=1), filters, groups=filters, act=act)


def _spatial_attention(g: GraphBuilder, x: Image) -> Image:
    """Adds the attention to points, which is computed at a low resolution and resized linearly."""
    narrow = conv(g, x, x.channels // 4, kernel=1)
    low = max_pool(g, conv(g, narrow, narrow.channels, stride=2), kernel=7, stride=3)
    for act in ("none", "relu", "none"):
        low = _separable(g, low, low.channels, act=act)
    sizes = g.ints([1, low.channels, x.size, x.size])
    high = g.op("Resize", low.value, "", "", sizes, mode="linear")
    both = add(g, replace(low, value=high, size=x.size), conv(g, narrow, narrow.channels, kernel=1))
    return _scaled(g, x, conv(g, both, x.channels, kernel=1, act="sigmoid").value)


def _contrast_attention(g: GraphBuilder, x: Image) -> Image:
    """Adds a squeeze-and-excite of the sum of deviation and mean."""
    mean = g.op("GlobalAveragePool", x.value)
    centred = g.op("Sub", x.value, mean)
    deviation = g.op("Sqrt", g.op("GlobalAveragePool", g.op("Mul", centred, centred)))
    pooled = Image(value=g.op("Add", deviation, mean), channels=x.channels, size=1)
    narrow = conv(g, pooled, x.channels // 4, kernel=1, act="relu")
    return _scaled(g, x, conv(g, narrow, x.channels, kernel=1, act="sigmoid").value)


# SAR-DRN


def sar_drn(size: int = 256, width: int = 64) -> onnx.ModelProto:
    """Builds SAR-DRN: seven dilated convolutions that predict the noise of an image of one channel."""
    g = GraphBuilder("sar-drn")
    image = image_input(g, size, 1)
    x, skipped = image, image
    for number, dilation in enumerate((1, 2, 3, 4, 3, 2, 1)):
        filters = 1 if number == 6 else width
        if number in (3, 6):  # the first and the fourth result skip two layers each
            x = activated(g, add(g, x, skipped), "relu")
        x = _dilated(g, x, filters, dilation, act="relu" if number not in (2, 5, 6) else "none")
        if number in (0, 3):
            skipped = x
    return finish(g, replace(image, value=g.op("Sub", image.value, x.value)))


def _dilated(g: GraphBuilder, x: Image, filters: int, dilation: int, *, act: str) -> Image:
    weight = g.weight((filters, x.channels, 3, 3), fan_in=9 * x.channels // 2 + 1)
    value = g.op(
        "Conv", x.value, weight, g.vector(filters), kernel_shape=[3, 3], pads=[dilation] * 4, dilations=[dilation] * 2
    )  # fmt: skip
    return activated(g, replace(x, value=value, channels=filters), act)


# RedNet


def rednet50(
    image: int = 224, depths: Sequence[int] = (3, 4, 6, 3), width: int = 64, classes: int = 1000
) -> onnx.ModelProto:
    """Builds RedNet-50: a ResNet whose windows of 7x7 have weights that each point computes (involution)."""
    g = GraphBuilder("rednet-50")
    x = conv(g, image_input(g, image), width // 2, stride=2, act="relu")
    x = conv(g, activated(g, _involution(g, x, kernel=3), "relu"), width, act="relu")
    x = max_pool(g, x, kernel=3, stride=2, pad=1)
    for stage, depth in enumerate(depths):
        planes = width << stage
        for block in range(depth):
            stride = 2 if stage and not block else 1
            main = conv(g, x, planes, kernel=1, act="relu")
            main = activated(g, _involution(g, main, kernel=7, stride=stride), "relu")
            main = conv(g, main, 4 * planes, kernel=1, gain=_GAIN_OF_BRANCH)
            if stride > 1 or x.channels != 4 * planes:
                x = conv(g, x, 4 * planes, kernel=1, stride=stride)
            x = activated(g, add(g, main, x), "relu")
    return classify(g, x, classes)


def _involution(g: GraphBuilder, x: Image, *, kernel: int, stride: int = 1, group: int = 16) -> Image:
    """Adds sums over windows with weights of their own for each point and each group of channels."""
    size, groups, points = (x.size - 1) // stride + 1, max(1, x.channels // group), kernel**2
    pooled = x
    if stride > 1:
        value = g.op("AveragePool", x.value, kernel_shape=[stride] * 2, strides=[stride] * 2)
        pooled = replace(x, value=value, size=size)
    narrow = conv(g, pooled, max(1, x.channels // 4), kernel=1, act="relu")
    weights = conv(g, narrow, points * groups, kernel=1, gain=kernel**-1.0)
    apart = g.op("Reshape", weights.value, g.ints([1, groups, 1, points, size * size]))
    windows = g.op(
        "Reshape", _unfolded(g, x, kernel, stride, size), g.ints([1, groups, -1, points, size * size])
    )
    sums = g.op("ReduceSum", g.op("Mul", windows, apart), g.ints([3]), keepdims=0)
    return replace(x, value=g.op("Reshape", sums, g.ints([1, x.channels, size, size])), size=size)


def _unfolded(g: GraphBuilder, x: Image, kernel: int, stride: int, size: int) -> str:
    """Adds the windows as exporters spell torch's Unfold: a pad and two gathers, then channels, window, points."""
    pad = kernel // 2
    padded = g.op("Pad", x.value, g.ints([0, 0, pad, pad, 0, 0, pad, pad]))
    rows = np.arange(kernel)[:, None] + stride * np.arange(size)[None, :]
    index = g.constant(rows.astype(np.int64), "rows")
    both = g.op("Gather", g.op("Gather", padded, index, axis=2), index, axis=4)
    return g.op("Transpose", both, perm=[0, 1, 2, 4, 3, 5])


# EfficientNet's sub-modules

SQUEEZED: tuple[tuple[int, int, int], ...] = (
    (32, 112, 8), (96, 56, 4), (144, 56, 6), (144, 28, 6), (240, 28, 10),
    (240, 14, 10), (480, 14, 20), (672, 14, 28), (672, 7, 28), (1152, 7, 48),
)  # fmt: skip
"""Channels, size and squeezed channels of EfficientNet-B0's squeeze-and-excite modules that differ: Souffle's M0 to
M9."""


def squeeze_and_excite_module(channels: int, size: int, squeezed: int) -> onnx.ModelProto:
    """Builds one of `SQUEEZED` on its own."""
    g = GraphBuilder("squeeze-and-excite")
    x = image_input(g, size, channels)
    return finish(g, squeeze_and_excite(g, x, squeezed))
