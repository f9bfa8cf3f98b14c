"""Vision transformers: ViT, and Swin with its shifted windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.workloads.attention import self_attention
from benchmarks.workloads.builder import GraphBuilder, gelu_erf, layer_norm, linear

_MASKED = -100.0  # Swin's mask value for tokens that were not neighbours before the shift


@dataclass(frozen=True, kw_only=True)
class VitOptions:
    """Sizes of a ViT; the defaults are ViT-base on patches of 16 pixels."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    image: int = 224
    patch: int = 16
    classes: int = 1000
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class SwinOptions:
    """Sizes of a Swin transformer; the defaults are Swin-T."""

    depths: Sequence[int] = (2, 2, 6, 2)
    heads: Sequence[int] = (3, 6, 12, 24)
    hidden: int = 96
    image: int = 224
    patch: int = 4
    window: int = 7
    classes: int = 1000
    seed: int = 0


def vit(options: VitOptions = VitOptions()) -> onnx.ModelProto:
    """Builds patches, class token and positions, pre-norm layers and the classifier."""
    o = options
    g = GraphBuilder("vit", seed=o.seed)
    side = o.image // o.patch
    sequence = side * side + 1
    tokens = _patches(g, g.input("image", (1, 3, o.image, o.image)), o.hidden, o.patch, side * side)
    token = g.weight((1, 1, o.hidden), fan_in=1, hint="class_token")
    x = g.op("Add", g.op("Concat", token, tokens, axis=1), g.weight((1, sequence, o.hidden), fan_in=1))
    for _ in range(o.layers):
        normed = layer_norm(g, x, o.hidden)
        attended = self_attention(g, normed, batch=1, sequence=sequence, hidden=o.hidden, heads=o.heads)
        x = g.op("Add", x, attended)
        x = g.op("Add", x, _mlp(g, layer_norm(g, x, o.hidden), o.hidden))
    first = g.op("Gather", layer_norm(g, x, o.hidden), g.constant(np.array(0)), axis=1)
    g.output(_classifier(g, first, o.hidden, o.classes), (1, o.classes))
    return g.build()


def swin(options: SwinOptions = SwinOptions()) -> onnx.ModelProto:
    """Builds stages of window attention; every second layer shifts its windows, and patches merge between stages."""
    o = options
    g = GraphBuilder("swin", seed=o.seed)
    side, hidden = o.image // o.patch, o.hidden
    x = _patches(g, g.input("image", (1, 3, o.image, o.image)), hidden, o.patch, side * side)
    x = layer_norm(g, x, hidden)
    for stage, (depth, heads) in enumerate(zip(o.depths, o.heads, strict=True)):
        if stage:
            x = _merge_patches(g, x, side, hidden)
            side, hidden = side // 2, 2 * hidden
        for layer in range(depth):
            shift = o.window // 2 if layer % 2 and side > o.window else 0
            x = _swin_layer(g, x, side=side, hidden=hidden, heads=heads, window=o.window, shift=shift)
    pooled = g.op("ReduceMean", layer_norm(g, x, hidden), axes=[1], keepdims=0)
    g.output(_classifier(g, pooled, hidden, o.classes), (1, o.classes))
    return g.build()


def _patches(g: GraphBuilder, image: str, hidden: int, patch: int, count: int) -> str:
    """Splits [1, 3, height, width] into patches [1, patches, hidden]."""
    weight = g.weight((hidden, 3, patch, patch), fan_in=3 * patch * patch)
    convolved = g.op(
        "Conv", image, weight, g.vector(hidden), kernel_shape=[patch] * 2, strides=[patch] * 2, pads=[0] * 4
    )
    return g.op("Transpose", g.op("Reshape", convolved, g.ints([1, hidden, count])), perm=[0, 2, 1])


def _mlp(g: GraphBuilder, x: str, hidden: int) -> str:
    return linear(g, gelu_erf(g, linear(g, x, hidden, 4 * hidden)), 4 * hidden, hidden)


def _classifier(g: GraphBuilder, x: str, hidden: int, classes: int) -> str:
    return g.op("Gemm", x, g.weight((classes, hidden), fan_in=hidden), g.vector(classes), transB=1)


def _swin_layer(
    g: GraphBuilder, x: str, *, side: int, hidden: int, heads: int, window: int, shift: int
) -> str:
    windows = (side // window) ** 2
    biases = [g.weight((1, heads, window**2, window**2), fan_in=4, hint="position_bias")]
    grid = g.op("Reshape", layer_norm(g, x, hidden), g.ints([1, side, side, hidden]))
    if shift:
        grid = _roll(g, grid, shift, side)
        biases.append(g.constant(_shift_mask(side, window, shift), "shift_mask"))
    attended = self_attention(
        g,
        _to_windows(g, grid, side, window, hidden),
        batch=windows,
        sequence=window**2,
        hidden=hidden,
        heads=heads,
        biases=biases,
    )
    grid = _from_windows(g, attended, side, window, hidden)
    if shift:
        grid = _roll(g, grid, side - shift, side)
    x = g.op("Add", x, g.op("Reshape", grid, g.ints([1, side * side, hidden])))
    return g.op("Add", x, _mlp(g, layer_norm(g, x, hidden), hidden))


def _roll(g: GraphBuilder, grid: str, shift: int, side: int) -> str:
    """Adds torch.roll by -shift along both sides, as it is exported."""
    for axis in (1, 2):
        head = g.op("Slice", grid, g.ints([0]), g.ints([shift]), g.ints([axis]))
        tail = g.op("Slice", grid, g.ints([shift]), g.ints([side]), g.ints([axis]))
        grid = g.op("Concat", tail, head, axis=axis)
    return grid


def _to_windows(g: GraphBuilder, grid: str, side: int, window: int, hidden: int) -> str:
    """Splits [1, side, side, hidden] into windows [windows, tokens of a window, hidden]."""
    count = side // window
    split = g.op("Reshape", grid, g.ints([count, window, count, window, hidden]))
    ordered = g.op("Transpose", split, perm=[0, 2, 1, 3, 4])
    return g.op("Reshape", ordered, g.ints([count * count, window * window, hidden]))


def _from_windows(g: GraphBuilder, windows: str, side: int, window: int, hidden: int) -> str:
    """Adds the inverse of _to_windows."""
    count = side // window
    split = g.op("Reshape", windows, g.ints([count, count, window, window, hidden]))
    ordered = g.op("Transpose", split, perm=[0, 2, 1, 3, 4])
    return g.op("Reshape", ordered, g.ints([1, side, side, hidden]))


def _shift_mask(side: int, window: int, shift: int) -> np.ndarray:
    """Returns an additive mask [windows, 1, tokens, tokens] that hides tokens of a shifted window from different
    regions."""
    region = np.zeros((side, side), dtype=np.int64)
    ends = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for number, (rows, columns) in enumerate((rows, columns) for rows in ends for columns in ends):
        region[rows, columns] = number
    count = side // window
    tokens = region.reshape(count, window, count, window).transpose(0, 2, 1, 3).reshape(-1, 1, window**2)
    differ = tokens[:, :, :, None] != tokens[:, :, None, :]
    return np.where(differ, np.float32(_MASKED), np.float32(0.0))


def _merge_patches(g: GraphBuilder, x: str, side: int, hidden: int) -> str:
    """Concatenates the channels of 2x2 patches, normalises, and halves the channels."""
    grid = g.op("Reshape", x, g.ints([1, side, side, hidden]))
    corners = [
        g.op("Slice", grid, g.ints([row, column]), g.ints([side, side]), g.ints([1, 2]), g.ints([2, 2]))
        for column in (0, 1)
        for row in (0, 1)
    ]
    merged = g.op("Reshape", g.op("Concat", *corners, axis=3), g.ints([1, side * side // 4, 4 * hidden]))
    return linear(g, layer_norm(g, merged, 4 * hidden), 4 * hidden, 2 * hidden, bias=False)
