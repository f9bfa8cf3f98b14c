"""Convolutional networks as their papers define them, with random weights and batch normalisation folded in.

All take an f32 image of shape (1, 3, size, size), or feature maps of the stated shape, with channels first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx

from benchmarks.workloads.attention import self_attention
from benchmarks.workloads.builder import GraphBuilder, layer_norm, linear

_GAIN_OF_BRANCH = 0.25
"""Factor on the last weights of a residual branch, so that sums of many branches stay of the order of one."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """Feature maps of shape (1, channels, size, size)."""

    value: str
    channels: int
    size: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (1, self.channels, self.size, self.size)


def image_input(g: GraphBuilder, size: int, channels: int = 3) -> Image:
    return Image(value=g.input("image", (1, channels, size, size)), channels=channels, size=size)


def activated(g: GraphBuilder, x: Image, kind: str) -> Image:
    """Adds an activation: relu, relu6, silu, sigmoid, or none."""
    if kind == "none":
        return x
    if kind == "silu":
        return replace(x, value=g.op("Mul", x.value, g.op("Sigmoid", x.value)))
    if kind == "relu6":
        return replace(x, value=g.op("Clip", x.value, g.scalar(0.0), g.scalar(6.0)))
    return replace(x, value=g.op({"relu": "Relu", "sigmoid": "Sigmoid"}[kind], x.value))


def conv(
    g: GraphBuilder,
    x: Image,
    filters: int,
    *,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    act: str = "none",
    gain: float = 1.0,
) -> Image:
    """Adds a convolution with a bias, padded by half the kernel, and an activation."""
    # An activation drops about half of the signal, so the variance of weights is twice that of a linear layer.
    fan_in = x.channels // groups * kernel**2 / (1 if act == "none" else 2) / gain**2
    weight = g.weight((filters, x.channels // groups, kernel, kernel), fan_in=max(1, round(fan_in)))
    value = g.op(
        "Conv", x.value, weight, g.vector(filters),
        group=groups, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, strides=[stride] * 2,
    )  # fmt: skip
    size = (x.size + kernel // 2 * 2 - kernel) // stride + 1
    return activated(g, Image(value=value, channels=filters, size=size), act)


def max_pool(g: GraphBuilder, x: Image, *, kernel: int, stride: int, pad: int = 0) -> Image:
    value = g.op("MaxPool", x.value, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
    return replace(x, value=value, size=(x.size + 2 * pad - kernel) // stride + 1)


def add(g: GraphBuilder, a: Image, b: Image) -> Image:
    return replace(a, value=g.op("Add", a.value, b.value))


def concat(g: GraphBuilder, images: Sequence[Image]) -> Image:
    """Joins feature maps of one size along their channels."""
    value = g.op("Concat", *(image.value for image in images), axis=1)
    return replace(images[0], value=value, channels=sum(image.channels for image in images))


def upsampled(g: GraphBuilder, x: Image) -> Image:
    """Doubles the size by repeating each point."""
    sizes = g.ints([1, x.channels, 2 * x.size, 2 * x.size])
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return replace(x, value=g.op("Resize", x.value, "", "", sizes, **how), size=2 * x.size)


def classify(g: GraphBuilder, x: Image, classes: int = 1000) -> onnx.ModelProto:
    """Adds a global average pool and a linear layer, and returns the finished model."""
    pooled = g.op("Flatten", g.op("GlobalAveragePool", x.value), axis=1)
    weight = g.weight((classes, x.channels), fan_in=x.channels)
    g.output(g.op("Gemm", pooled, weight, g.vector(classes), transB=1), (1, classes))
    return g.build()


def finish(g: GraphBuilder, x: Image) -> onnx.ModelProto:
    g.output(x.value, x.shape)
    return g.build()


def group_norm(g: GraphBuilder, x: Image, groups: int, *, act: str = "none") -> Image:
    """Adds a GroupNorm as torch exports it: an instance normalisation of groups, a gain and a shift."""
    rows = g.op("Reshape", x.value, g.ints([0, groups, -1]))
    ones, zeros = g.vector(groups, mean=1.0, deviation=0.0), g.vector(groups, deviation=0.0)
    normal = g.op("Reshape", g.op("InstanceNormalization", rows, ones, zeros, epsilon=1e-5), g.ints(x.shape))
    gain, shift = (
        g.op("Reshape", g.vector(x.channels, mean=mean), g.ints([-1, 1, 1])) for mean in (1.0, 0.0)
    )
    return activated(g, replace(x, value=g.op("Add", g.op("Mul", normal, gain), shift)), act)


# ResNet and ResNeXt


@dataclass(frozen=True, kw_only=True)
class ResNetOptions:
    """Blocks per stage. `groups` and `width` (per group, of the first stage) make a ResNeXt of a ResNet."""

    depths: tuple[int, ...] = (3, 4, 6, 3)
    is_bottleneck: bool = True
    groups: int = 1
    width: int = 64
    image: int = 224
    seed: int = 0


def resnet(options: ResNetOptions = ResNetOptions()) -> onnx.ModelProto:
    o = options
    g = GraphBuilder("resnet", seed=o.seed)
    x = conv(g, image_input(g, o.image), 64, kernel=7, stride=2, act="relu")
    x = max_pool(g, x, kernel=3, stride=2, pad=1)
    for stage, depth in enumerate(o.depths):
        planes = 64 << stage
        for block in range(depth):
            stride = 2 if stage and not block else 1
            x = (
                _bottleneck(g, x, planes, stride, o)
                if o.is_bottleneck
                else _basic_block(g, x, planes, stride)
            )
    return classify(g, x)


def _shortcut(g: GraphBuilder, x: Image, filters: int, stride: int) -> Image:
    return x if stride == 1 and x.channels == filters else conv(g, x, filters, kernel=1, stride=stride)


def _basic_block(g: GraphBuilder, x: Image, filters: int, stride: int) -> Image:
    main = conv(g, x, filters, stride=stride, act="relu")
    main = conv(g, main, filters, gain=_GAIN_OF_BRANCH)
    return activated(g, add(g, main, _shortcut(g, x, filters, stride)), "relu")


def _bottleneck(g: GraphBuilder, x: Image, planes: int, stride: int, o: ResNetOptions) -> Image:
    width = planes * o.width // 64 * o.groups
    main = conv(g, x, width, kernel=1, act="relu")
    main = conv(g, main, width, stride=stride, groups=o.groups, act="relu")
    main = conv(g, main, 4 * planes, kernel=1, gain=_GAIN_OF_BRANCH)
    return activated(g, add(g, main, _shortcut(g, x, 4 * planes, stride)), "relu")


# MobileNetV2 and EfficientNet


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Inverted residuals: the first has the stride, all have the expansion and the kernel."""

    expansion: int
    filters: int
    blocks: int
    stride: int
    kernel: int = 3


def _stages(*rows: tuple[int, ...]) -> tuple[Stage, ...]:
    return tuple(Stage(expansion=t, filters=c, blocks=n, stride=s, kernel=k) for t, c, n, s, k in rows)


_MOBILENET_V2 = _stages(
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3),
    (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3),
)  # fmt: skip
_EFFICIENTNET_B0 = _stages(
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip


def mobilenet_v2(image: int = 224, stages: Sequence[Stage] = _MOBILENET_V2) -> onnx.ModelProto:
    g = GraphBuilder("mobilenet-v2")
    x = conv(g, image_input(g, image), 32, stride=2, act="relu6")
    x = _inverted_stages(g, x, stages, act="relu6", squeezes=False)
    return classify(g, conv(g, x, 1280, kernel=1, act="relu6"))


def efficientnet_b0(image: int = 224, stages: Sequence[Stage] = _EFFICIENTNET_B0) -> onnx.ModelProto:
    g = GraphBuilder("efficientnet-b0")
    x = conv(g, image_input(g, image), 32, stride=2, act="silu")
    x = _inverted_stages(g, x, stages, act="silu", squeezes=True)
    return classify(g, conv(g, x, 1280, kernel=1, act="silu"))


def _inverted_stages(
    g: GraphBuilder, x: Image, stages: Sequence[Stage], *, act: str, squeezes: bool
) -> Image:
    for stage in stages:
        for block in range(stage.blocks):
            x = inverted_residual(g, x, stage, stage.stride if block == 0 else 1, act=act, squeezes=squeezes)
    return x


def inverted_residual(
    g: GraphBuilder, x: Image, stage: Stage, stride: int, *, act: str, squeezes: bool
) -> Image:
    """Adds 1x1, depthwise, squeeze-and-excite and 1x1 convolutions: MobileNetV2's block, or EfficientNet's."""
    wide = x.channels * stage.expansion
    main = x if stage.expansion == 1 else conv(g, x, wide, kernel=1, act=act)
    main = conv(g, main, wide, kernel=stage.kernel, stride=stride, groups=wide, act=act)
    if squeezes:
        main = squeeze_and_excite(g, main, max(1, x.channels // 4))
    joins = stride == 1 and x.channels == stage.filters
    main = conv(g, main, stage.filters, kernel=1, gain=_GAIN_OF_BRANCH if joins else 1.0)
    return add(g, main, x) if joins else main


def squeeze_and_excite(g: GraphBuilder, x: Image, squeezed: int) -> Image:
    """Adds gates of channels, which two 1x1 convolutions compute from the means of the channels."""
    pooled = Image(value=g.op("GlobalAveragePool", x.value), channels=x.channels, size=1)
    gate = conv(g, conv(g, pooled, squeezed, kernel=1, act="silu"), x.channels, kernel=1, act="sigmoid")
    return replace(x, value=g.op("Mul", x.value, gate.value))


# Others


def shufflenet_v2(
    image: int = 224, widths: Sequence[int] = (116, 232, 464), depths: Sequence[int] = (4, 8, 4)
) -> onnx.ModelProto:
    """Builds ShuffleNetV2 1x."""
    g = GraphBuilder("shufflenet-v2")
    x = max_pool(g, conv(g, image_input(g, image), 24, stride=2, act="relu"), kernel=3, stride=2, pad=1)
    for width, depth in zip(widths, depths, strict=True):
        for block in range(depth):
            x = _shuffle_unit(g, x, width // 2, stride=1 if block else 2)
    return classify(g, conv(g, x, 1024, kernel=1, act="relu"))


def _shuffle_unit(g: GraphBuilder, x: Image, branch: int, *, stride: int) -> Image:
    if stride == 1:
        left, right = (
            replace(x, value=half, channels=branch)
            for half in g.ops("Split", x.value, g.ints([branch, branch]), results=2, axis=1)
        )
    else:
        left = conv(g, conv(g, x, x.channels, stride=2, groups=x.channels), branch, kernel=1, act="relu")
        right = x
    right = conv(g, right, branch, kernel=1, act="relu")
    right = conv(g, conv(g, right, branch, stride=stride, groups=branch), branch, kernel=1, act="relu")
    both = concat(g, [left, right])
    apart = g.op("Reshape", both.value, g.ints([1, 2, branch, both.size, both.size]))
    mixed = g.op("Transpose", apart, perm=[0, 2, 1, 3, 4])
    return replace(both, value=g.op("Reshape", mixed, g.ints(both.shape)))


def vgg16(image: int = 224, width: int = 64, dense: int = 4096) -> onnx.ModelProto:
    g = GraphBuilder("vgg-16")
    x = image_input(g, image)
    for filters, depth in ((width, 2), (2 * width, 2), (4 * width, 3), (8 * width, 3), (8 * width, 3)):
        for _ in range(depth):
            x = conv(g, x, filters, act="relu")
        x = max_pool(g, x, kernel=2, stride=2)
    value, fan_in = g.op("Flatten", x.value, axis=1), x.channels * x.size**2
    for fan_out in (dense, dense, 1000):
        weight = g.weight((fan_out, fan_in), fan_in=fan_in // 2)
        value = g.op("Gemm", value, weight, g.vector(fan_out), transB=1)
        value, fan_in = (value if fan_out == 1000 else g.op("Relu", value)), fan_out
    g.output(value, (1, 1000))
    return g.build()


def unet(image: int = 128, width: int = 64, levels: int = 4) -> onnx.ModelProto:
    """Builds a UNet whose way up doubles sizes by transposed convolutions, as in its paper."""
    g = GraphBuilder("unet")
    x, skipped = image_input(g, image), []
    for level in range(levels):
        x = conv(g, conv(g, x, width << level, act="relu"), width << level, act="relu")
        skipped.append(x)
        x = max_pool(g, x, kernel=2, stride=2)
    x = conv(g, conv(g, x, width << levels, act="relu"), width << levels, act="relu")
    for skip in reversed(skipped):
        weight = g.weight((x.channels, skip.channels, 2, 2), fan_in=x.channels)
        up = g.op(
            "ConvTranspose", x.value, weight, g.vector(skip.channels), kernel_shape=[2, 2], strides=[2, 2]
        )
        x = concat(g, [skip, Image(value=up, channels=skip.channels, size=2 * x.size)])
        x = conv(g, conv(g, x, skip.channels, act="relu"), skip.channels, act="relu")
    return finish(g, conv(g, x, 2, kernel=1))


def diffusion_block(channels: int = 320, size: int = 32, groups: int = 32, heads: int = 8) -> onnx.ModelProto:
    """Builds a residual block with a time embedding and self-attention, as in a latent diffusion model's UNet."""
    g = GraphBuilder("diffusion-block")
    x = image_input(g, size, channels)
    time = g.input("time", (1, 4 * channels))
    shift = g.op(
        "Gemm", time, g.weight((channels, 4 * channels), fan_in=4 * channels), g.vector(channels), transB=1
    )
    main = conv(g, group_norm(g, x, groups, act="silu"), channels)
    main = replace(main, value=g.op("Add", main.value, g.op("Reshape", shift, g.ints([1, channels, 1, 1]))))
    x = add(g, x, conv(g, group_norm(g, main, groups, act="silu"), channels, gain=_GAIN_OF_BRANCH))
    normal = g.op("Reshape", group_norm(g, x, groups).value, g.ints([1, channels, size * size]))
    tokens = g.op("Transpose", normal, perm=[0, 2, 1])
    mixed = self_attention(g, tokens, batch=1, sequence=size * size, hidden=channels, heads=heads)
    back = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1]), g.ints(x.shape))
    return finish(g, replace(x, value=g.op("Add", x.value, back)))


def vae_decoder_block(channels: int = 256, size: int = 32, groups: int = 32) -> onnx.ModelProto:
    """Builds a residual block and the upsampling after it, as in the decoder of a latent diffusion model."""
    g = GraphBuilder("vae-decoder-block")
    x = image_input(g, size, channels)
    main = conv(g, group_norm(g, x, groups, act="silu"), channels)
    x = add(g, x, conv(g, group_norm(g, main, groups, act="silu"), channels, gain=_GAIN_OF_BRANCH))
    return finish(g, conv(g, upsampled(g, x), channels))


def yolo_head(image: int = 320, widths: Sequence[int] = (64, 128, 256), classes: int = 80) -> onnx.ModelProto:
    """Builds a decoupled detection head over three levels, after one step of a feature pyramid."""
    g = GraphBuilder("yolo-head")
    levels = [
        Image(
            value=g.input(f"level{i}", (1, c, image >> (3 + i), image >> (3 + i))),
            channels=c,
            size=image >> (3 + i),
        )
        for i, c in enumerate(widths)
    ]
    for i in (1, 0):
        up = upsampled(g, conv(g, levels[i + 1], levels[i].channels, kernel=1, act="silu"))
        levels[i] = conv(g, concat(g, [levels[i], up]), levels[i].channels, act="silu")
    rows, points = [], 0
    for level in levels:
        boxes = conv(g, conv(g, conv(g, level, 64, act="silu"), 64, act="silu"), 64, kernel=1)
        scores = conv(
            g, conv(g, conv(g, level, 80, act="silu"), 80, act="silu"), classes, kernel=1, act="sigmoid"
        )
        both = concat(g, [boxes, scores])
        rows.append(g.op("Reshape", both.value, g.ints([1, both.channels, level.size**2])))
        points += level.size**2
    g.output(g.op("Concat", *rows, axis=2), (1, 64 + classes, points))
    return g.build()


def mobilevit(image: int = 256, depths: Sequence[int] = (2, 4, 3)) -> onnx.ModelProto:
    """Builds MobileViT-XS: inverted residuals, and transformers over the same pixel of all patches of 2x2."""
    g = GraphBuilder("mobilevit-xs")
    x = conv(g, image_input(g, image), 16, stride=2, act="silu")

    def residual(x: Image, filters: int, stride: int) -> Image:
        stage = Stage(expansion=4, filters=filters, blocks=1, stride=stride)
        return inverted_residual(g, x, stage, stride, act="silu", squeezes=False)

    for filters, stride in ((32, 1), (48, 2), (48, 1), (48, 1)):
        x = residual(x, filters, stride)
    for filters, hidden, depth in zip((64, 80, 96), (96, 120, 144), depths, strict=True):
        x = _mobilevit_block(g, residual(x, filters, 2), hidden, depth)
    return classify(g, conv(g, x, 384, kernel=1, act="silu"))


def _mobilevit_block(g: GraphBuilder, x: Image, hidden: int, depth: int) -> Image:
    half = x.size // 2
    local = conv(g, conv(g, x, x.channels, act="silu"), hidden, kernel=1)
    apart = g.op("Reshape", local.value, g.ints([hidden, half, 2, half, 2]))
    tokens = g.op("Reshape", g.op("Transpose", apart, perm=[2, 4, 1, 3, 0]), g.ints([4, half * half, hidden]))
    for _ in range(depth):
        normal = layer_norm(g, tokens, hidden)
        mixed = self_attention(g, normal, batch=4, sequence=half * half, hidden=hidden, heads=4)
        tokens = g.op("Add", tokens, mixed)
        wide = linear(g, layer_norm(g, tokens, hidden), hidden, 2 * hidden)
        tokens = g.op("Add", tokens, linear(g, g.op("Mul", wide, g.op("Sigmoid", wide)), 2 * hidden, hidden))
    rows = g.op("Reshape", tokens, g.ints([2, 2, half, half, hidden]))
    together = g.op(
        "Reshape", g.op("Transpose", rows, perm=[4, 2, 0, 3, 1]), g.ints([1, hidden, x.size, x.size])
    )
    back = conv(g, replace(local, value=together), x.channels, kernel=1, act="silu")
    return conv(g, concat(g, [x, back]), x.channels, act="silu")
