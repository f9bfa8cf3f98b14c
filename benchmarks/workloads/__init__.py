"""The benchmark workloads, by name.

python -m benchmarks.workloads --list
python -m benchmarks.workloads bert-small -o bert-small.onnx
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import onnx

from benchmarks.workloads import contractions, networks, stitch
from benchmarks.workloads.contractions import AttentionOptions, ChainOptions
from benchmarks.workloads.convolutional import (
    BottleneckOptions,
    CnnOptions,
    ConvolutionChainOptions,
    ConvolutionOptions,
    bottlenecks,
    cnn,
    convolution,
    convolution_chain,
    inverted_residuals,
    pooling,
)
from benchmarks.workloads.narrow import to_narrow
from benchmarks.workloads.neural_fields import NerfOptions, nerf
from benchmarks.workloads.random_stitches import SEEDS, random_stitch
from benchmarks.workloads.recommendation import DienOptions, MmoeOptions, dien, mmoe
from benchmarks.workloads.recurrent import RecurrentOptions, ScanOptions, recurrent, selective_scan
from benchmarks.workloads.speech import ConformerOptions, conformer_block
from benchmarks.workloads.transformers import (
    BertOptions,
    DecodeOptions,
    Gpt2Options,
    LlamaOptions,
    bert,
    gpt2,
    gpt2_block,
    gpt2_decode,
    llama_block,
    state_of,
)
from benchmarks.workloads.vision import SwinOptions, VitOptions, swin, vit

__all__ = [
    "WORKLOADS",
    "BertOptions",
    "CnnOptions",
    "ConformerOptions",
    "DecodeOptions",
    "DienOptions",
    "Gpt2Options",
    "LlamaOptions",
    "MmoeOptions",
    "NerfOptions",
    "RecurrentOptions",
    "ScanOptions",
    "SwinOptions",
    "VitOptions",
    "Workload",
    "WorkloadError",
    "bert",
    "build",
    "cnn",
    "conformer_block",
    "dien",
    "gpt2",
    "gpt2_block",
    "gpt2_decode",
    "llama_block",
    "mmoe",
    "nerf",
    "random_stitch",
    "recurrent",
    "selective_scan",
    "state_of",
    "swin",
    "vit",
]


class WorkloadError(ValueError):
    """The requested workload does not exist."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A named model. `build` returns a fresh, deterministic ModelProto."""

    name: str
    build: Callable[[], onnx.ModelProto]
    description: str
    suite: str
    dtype: str = "f32"
    is_large: bool = False
    """True if the workload is too large for tests that do not measure."""

    def in_type(self, dtype: str) -> Workload:
        """Returns the same workload in f32, bf16 or f16; it keeps its name."""
        if dtype == self.dtype:
            return self
        return replace(self, build=lambda: to_narrow(self.build(), dtype), dtype=dtype)


# Token-major activations of a transformer layer and its MLP, and a decode step
_ROWS = (512, 768)
_WIDE_ROWS = (128, 3072)
# Sizes beyond the caches, so that memory bandwidth is the limit
_LARGE = (2048, 4096)
# 256 MB of float32
_BANDWIDTH = (65536, 1024)
_LARGE_ELEMENTS = 1 << 22
_LARGE_MODELS = ("bert", "vit-base", "swin-t", "gpt2", "gpt2-decode", "gpt2-decode-128")

# Convolutional networks as in their papers, at batch 1
_NETWORKS: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "resnet-18": (
        partial(networks.resnet, networks.ResNetOptions(depths=(2, 2, 2, 2), is_bottleneck=False)),
        "ResNet-18, 1x3x224x224",
    ),
    "resnet-50": (networks.resnet, "ResNet-50, 1x3x224x224"),
    "resnext-50": (
        partial(networks.resnet, networks.ResNetOptions(groups=32, width=4)),
        "ResNeXt-50 (32x4d), 1x3x224x224",
    ),
    "resnext-101": (
        partial(networks.resnet, networks.ResNetOptions(depths=(3, 4, 23, 3), groups=64, width=4)),
        "ResNeXt-101 (64x4d), 1x3x224x224",
    ),
    "mobilenet-v2": (networks.mobilenet_v2, "MobileNetV2, 1x3x224x224"),
    "efficientnet-b0": (networks.efficientnet_b0, "EfficientNet-B0, 1x3x224x224"),
    "shufflenet-v2": (networks.shufflenet_v2, "ShuffleNetV2 1x, 1x3x224x224"),
    "vgg-16": (networks.vgg16, "VGG-16, 1x3x224x224"),
    "unet": (networks.unet, "UNet of four levels, 64 wide, 1x3x128x128"),
    "diffusion-block": (networks.diffusion_block, "block of a latent diffusion model's UNet, 1x320x32x32"),
    "vae-decoder-block": (
        networks.vae_decoder_block,
        "block of a latent diffusion model's decoder, 1x256x32x32",
    ),
    "yolo-head": (networks.yolo_head, "detection head over three levels of an image of 320x320"),
    "mobilevit": (networks.mobilevit, "MobileViT-XS, 1x3x256x256"),
}
# The same networks, small enough for tests
_SMALL_NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet-18-small": partial(
        networks.resnet, networks.ResNetOptions(depths=(1, 1), is_bottleneck=False, image=32)
    ),
    "efficientnet-small": partial(
        networks.efficientnet_b0, 32, (networks.Stage(expansion=6, filters=24, blocks=2, stride=2, kernel=5),)
    ),
    "shufflenet-v2-small": partial(networks.shufflenet_v2, 32, (24,), (2,)),
    "vgg-small": partial(networks.vgg16, 32, 4, 32),
    "unet-small": partial(networks.unet, 16, 8, 2),
    "diffusion-block-small": partial(networks.diffusion_block, 32, 8, 4, 2),
    "vae-decoder-block-small": partial(networks.vae_decoder_block, 32, 8, 4),
    "yolo-head-small": partial(networks.yolo_head, 64, (16, 16, 32), 4),
    "mobilevit-small": partial(networks.mobilevit, 64, (1, 1, 1)),
}

# channels, image, filters, strides and kernels of Chimera's table V
_CONVOLUTION_CHAINS: dict[str, tuple[int, int, tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    "c1": (64, 112, (192, 128), (2, 1), (3, 1)),
    "c2": (32, 147, (64, 80), (2, 1), (3, 1)),
    "c3": (64, 56, (128, 64), (1, 1), (3, 1)),
    "c4": (128, 28, (256, 128), (1, 1), (3, 1)),
    "c5": (16, 227, (64, 16), (4, 1), (3, 1)),
    "c6": (64, 56, (64, 64), (1, 1), (1, 3)),
    "c7": (64, 56, (64, 64), (1, 1), (1, 1)),
    "c8": (256, 56, (256, 64), (1, 1), (1, 1)),
}

# image, channels, filters, kernel, stride and groups (0: depthwise) of the different layers of a network
_LAYERS: dict[str, tuple[tuple[int, int, int, int, int, int], ...]] = {
    "resnet-50": (
        (224, 3, 64, 7, 2, 1),
        (56, 64, 64, 1, 1, 1),
        (56, 64, 64, 3, 1, 1),
        (56, 64, 256, 1, 1, 1),
        (56, 256, 64, 1, 1, 1),
        (56, 256, 128, 1, 1, 1),
        (56, 128, 128, 3, 2, 1),
        (56, 256, 512, 1, 2, 1),
        (28, 128, 128, 3, 1, 1),
        (28, 128, 512, 1, 1, 1),
        (28, 512, 128, 1, 1, 1),
        (28, 256, 256, 3, 2, 1),
        (28, 512, 1024, 1, 2, 1),
        (14, 256, 256, 3, 1, 1),
        (14, 256, 1024, 1, 1, 1),
        (14, 1024, 256, 1, 1, 1),
        (14, 512, 512, 3, 2, 1),
        (14, 1024, 2048, 1, 2, 1),
        (7, 512, 512, 3, 1, 1),
        (7, 512, 2048, 1, 1, 1),
        (7, 2048, 512, 1, 1, 1),
    ),
    "mobilenet-v2": (
        (224, 3, 32, 3, 2, 1),
        (112, 32, 32, 3, 1, 0),
        (112, 32, 16, 1, 1, 1),
        (112, 16, 96, 1, 1, 1),
        (112, 96, 96, 3, 2, 0),
        (56, 96, 24, 1, 1, 1),
        (56, 24, 144, 1, 1, 1),
        (56, 144, 144, 3, 1, 0),
        (28, 192, 192, 3, 1, 0),
        (28, 192, 32, 1, 1, 1),
        (14, 384, 384, 3, 1, 0),
        (14, 384, 64, 1, 1, 1),
        (14, 96, 576, 1, 1, 1),
        (7, 960, 960, 3, 1, 0),
        (7, 960, 320, 1, 1, 1),
        (7, 320, 1280, 1, 1, 1),
    ),
}

_Shapes = tuple[Sequence[int], ...]
_Builder = Callable[..., onnx.ModelProto]

_STITCH: tuple[tuple[str, _Builder, _Shapes], ...] = (
    ("softmax", stitch.softmax, ((6144, 512), (2048, 2048), (77, 77, 5), (1, 50257))),
    ("softmax-axis1", partial(stitch.softmax, axis=1), ((16, 197, 768),)),
    ("masked-softmax", stitch.masked_softmax, ((6144, 512), (1, 12, 128, 128), (77, 77, 5))),
    ("causal-softmax", stitch.causal_softmax, ((12, 512, 512),)),
    ("layer-norm", stitch.layer_norm_op, (_ROWS, (128, 768), (512, 1024), _LARGE, (77, 321), (197, 1027))),
    ("layer-norm-decomposed", stitch.layer_norm_chain, (_ROWS, (197, 1027))),
    ("rms-norm", stitch.rms_norm_chain, (_ROWS, (1, 4096), (128, 4096), _LARGE)),
    (
        "bias-residual-layer-norm",
        stitch.bias_residual_layer_norm,
        (_ROWS, (1, 128, 768), (128, 768), (2048, 1024)),
    ),
    ("gelu-erf", stitch.gelu_erf_chain, (_WIDE_ROWS, _LARGE)),
    ("gelu-tanh", stitch.gelu_tanh_chain, (_WIDE_ROWS, _LARGE)),
    ("silu-product", stitch.silu_product, ((128, 1376), (128, 11008))),
    ("log-softmax", stitch.log_softmax, ((128, 30522), (1, 50257), (127, 1003))),
    ("l2-normalise", stitch.l2_normalise, (_ROWS, (1000, 128), (1023, 129))),
    ("batch-statistics", stitch.batch_statistics, ((8, 64, 28, 28), (129, 77))),
    ("batch-statistics-nhwc", partial(stitch.batch_statistics, channel=3), ((32, 56, 56, 64),)),
    ("transpose-cast", stitch.transpose_cast, ((12, 128, 64),)),
    ("argmax", stitch.argmax, ((512, 30522),)),
    ("rotary", stitch.rotary, ((32, 128, 64),)),
)

_OUT_OF_CACHE: tuple[tuple[str, _Builder, _Shapes], ...] = (
    ("scaled-copy", stitch.scaled_copy, (_BANDWIDTH,)),
    ("layer-norm", stitch.layer_norm_op, (_BANDWIDTH,)),
    ("softmax", stitch.softmax, (_BANDWIDTH,)),
)

# M, K and N of matmuls
_GEMMS: tuple[tuple[int, int, int], ...] = (
    # BERT's layers, and the same matrix with every number of rows
    *((rows, 768, 768) for rows in (1, 4, 16, 64, 128, 256, 512)),
    (128, 768, 3072),
    (128, 3072, 768),
    (512, 768, 3072),
    # GPT-2: the fused projection of a prompt and of one token, and the vocabulary
    (128, 768, 2304),
    (1, 768, 2304),
    (1, 768, 50257),
    # Llama: prompt and token
    (128, 4096, 4096),
    (1, 4096, 4096),
    (16, 4096, 11008),
    # MLP-Mixer: tokens and channels
    (768, 196, 384),
    (768, 384, 196),
    (196, 768, 3072),
    # Skinny shapes
    (512, 64, 512),
    (512, 512, 64),
    (512, 768, 2),
    (512, 16, 768),
    # Odd shapes
    (77, 321, 123),
    (33, 1027, 65),
    (7, 1000, 1000),
)

# Square matmuls, which fill a GPU
_SQUARE_GEMMS = tuple((size,) * 3 for size in (1024, 2048, 4096))

# batch, M, N, K and L of the paper's table IV
_CHAINS: dict[str, tuple[int, int, int, int, int]] = {
    "g1": (8, 512, 64, 64, 512),
    "g2": (12, 512, 64, 64, 512),
    "g3": (16, 512, 64, 64, 512),
    "g4": (12, 256, 64, 64, 256),
    "g5": (16, 256, 64, 64, 256),
    "g6": (16, 256, 80, 80, 256),
    "g7": (12, 208, 64, 64, 208),
    "g8": (16, 208, 64, 64, 208),
    "g9": (16, 208, 80, 80, 208),
    "g10": (1, 512, 64, 64, 256),
    "g11": (1, 768, 64, 64, 384),
    "g12": (1, 1024, 64, 64, 512),
}

# heads, key-value heads, sequence, head size, causal
_ATTENTIONS: tuple[tuple[int, int, int, int, bool], ...] = (
    (12, 12, 128, 64, True),
    (12, 12, 512, 64, True),
    (8, 2, 512, 64, False),
    (8, 2, 512, 64, True),
    (32, 8, 256, 128, True),
)
# Single convolutions in the forms that networks consist of
_CONVOLUTIONS: dict[str, ConvolutionOptions] = {
    "conv-1x1": ConvolutionOptions(channels=64, filters=128, kernel=1),
    "conv-1x1-stride-2": ConvolutionOptions(channels=64, filters=128, kernel=1, stride=2),
    "conv-1x1-stride-2-odd": ConvolutionOptions(channels=24, filters=40, kernel=1, stride=2, image=15),
    "conv-3x3": ConvolutionOptions(channels=64, filters=64, kernel=3),
    "conv-3x3-16": ConvolutionOptions(channels=16, filters=16, kernel=3, image=16),
    "conv-3x3-stride-2": ConvolutionOptions(channels=64, filters=64, kernel=3, stride=2),
    "conv-3x3-stem": ConvolutionOptions(channels=3, filters=32, kernel=3, stride=2, image=57),
    "conv-7x7-stride-2": ConvolutionOptions(channels=3, filters=64, kernel=7, stride=2, image=56),
    "conv-depthwise": ConvolutionOptions(channels=64, filters=64, kernel=3, groups=0),
    "conv-depthwise-stride-2": ConvolutionOptions(channels=64, filters=64, kernel=3, groups=0, stride=2),
    "conv-grouped": ConvolutionOptions(channels=64, filters=64, kernel=3, groups=8),
    "conv-grouped-stride-2": ConvolutionOptions(channels=64, filters=64, kernel=3, groups=8, stride=2),
    "conv-1d-stride-2": ConvolutionOptions(channels=64, filters=64, kernel=3, stride=2, rank=1, image=120),
    "conv-1d-1-stride-2": ConvolutionOptions(channels=64, filters=64, kernel=1, stride=2, rank=1, image=120),
    "conv-3d": ConvolutionOptions(channels=16, filters=16, kernel=3, rank=3, image=10),
    "conv-transposed": ConvolutionOptions(channels=32, filters=16, kernel=4, stride=2, is_transposed=True),
}

# operator, channels, image size, kernel and stride
_POOLINGS: dict[str, tuple[str, int, int, int, int]] = {
    "max-pool-3x3": ("MaxPool", 64, 28, 3, 2),
    "max-pool-2x2": ("MaxPool", 64, 28, 2, 2),
    "average-pool-2x2": ("AveragePool", 64, 28, 2, 2),
    "global-average-pool": ("GlobalAveragePool", 64, 28, 28, 1),
}
# Multiply-adds above which float64 takes too long for a test.
_LARGE_PRODUCT = 1 << 27


def _models() -> list[Workload]:
    bert_small = BertOptions(layers=2, hidden=128, heads=4, sequence=32, intermediate=512)
    grouped = LlamaOptions(key_value_heads=2)
    batch = MmoeOptions(batch=256)
    wide, one = DecodeOptions(batch=128, maximum=128), DecodeOptions(layers=1, maximum=128)
    dense = ConformerOptions(has_convolution=False)
    rows: list[tuple[str, Callable[[], onnx.ModelProto], str]] = [
        ("bert", bert, "BERT-base encoder, 12 layers, sequence 128, batch 1, f32"),
        ("bert-small", partial(bert, bert_small), "BERT encoder, 2 layers, hidden 128, sequence 32"),
        ("gpt2-block", gpt2_block, "one GPT-2 small block, sequence 128, causal"),
        ("gpt2", gpt2, "GPT-2 small on a prompt of 128, without embeddings and vocabulary"),
        ("gpt2-decode", gpt2_decode, "GPT-2 small on one more token, caches of 1024, batch 1"),
        (
            "gpt2-decode-128",
            partial(gpt2_decode, wide),
            "GPT-2 small on one more token, caches of 128, batch 128",
        ),
        ("gpt2-decode-block", partial(gpt2_decode, one), "one layer of gpt2-decode, caches of 128"),
        ("llama-block", llama_block, "one Llama block, hidden 512, 8 heads, sequence 128, SwiGLU"),
        ("llama-block-grouped", partial(llama_block, grouped), "llama-block with 2 key/value heads"),
        ("cnn", cnn, "small residual CNN, 1x3x32x32"),
        ("cnn-64", partial(cnn, CnnOptions(image=64)), "small residual CNN, 1x3x64x64"),
        ("vit-base", vit, "ViT-base on patches of 16, 1x3x224x224"),
        ("swin-t", swin, "Swin-T, windows of 7, 1x3x224x224"),
        ("conformer-block", conformer_block, "one Conformer (M) block, 256 frames"),
        (
            "conformer-block-dense",
            partial(conformer_block, dense),
            "conformer-block without its convolutions",
        ),
        ("nerf", nerf, "MLP of a radiance field, 7 layers 64 wide, 16384 points"),
        ("mmoe", mmoe, "multi-gate mixture of 8 experts, batch 1"),
        ("mmoe-256", partial(mmoe, batch), "multi-gate mixture of 8 experts, batch 256"),
        ("dien", dien, "DIEN's attention and recurrence, unrolled over 16 steps, batch 256"),
    ]
    return [
        Workload(name=name, build=build, description=text, suite="models", is_large=name in _LARGE_MODELS)
        for name, build, text in rows
    ]


def _recurrent() -> list[Workload]:
    lstm, gru = RecurrentOptions(), RecurrentOptions(op="GRU", layers=2, batch=8)
    both = RecurrentOptions(layers=2, steps=50, hidden=128, batch=4, is_bidirectional=True, has_lengths=True)
    small = RecurrentOptions(layers=2, steps=7, hidden=32)
    rows: list[tuple[str, Callable[[], onnx.ModelProto], str]] = [
        ("lstm", partial(recurrent, lstm), "LSTM of Souffle's table 2: 10 layers, 100 steps, hidden 256"),
        ("lstm-layer", partial(recurrent, replace(lstm, layers=1)), "one layer of lstm"),
        ("lstm-small", partial(recurrent, small), "LSTM, 2 layers, 7 steps, hidden 32"),
        ("lstm-lengths", partial(recurrent, both), "LSTM in both directions over sequences of 4 lengths"),
        ("gru", partial(recurrent, gru), "GRU, 2 layers, 100 steps, hidden 256, batch 8"),
        ("selective-scan", selective_scan, "scan of Mamba, 64 steps, 128 channels with states of 16"),
    ]
    return [
        Workload(name=name, build=build, description=text, suite="recurrent", is_large=name == "lstm")
        for name, build, text in rows
    ]


def _patterns(suite: str, table: Sequence[tuple[str, _Builder, _Shapes]]) -> list[Workload]:
    return [
        Workload(
            name=f"{name}-{'x'.join(map(str, shape))}",
            build=partial(builder, shape),
            description=f"{name.replace('-', ' ')} on {'x'.join(map(str, shape))}",
            suite=suite,
            is_large=math.prod(shape) > _LARGE_ELEMENTS,
        )
        for name, builder, shapes in table
        for shape in shapes
    ]


def _gemms(suite: str, shapes: Sequence[tuple[int, int, int]]) -> list[Workload]:
    kinds = (("dense", contractions.dense, "constant"), ("matmul", contractions.matmul, "given"))
    return [
        Workload(
            name=f"{name}-{rows}x{fan_in}x{fan_out}",
            build=partial(builder, rows, fan_in, fan_out),
            description=f"{rows} rows of {fan_in} by a {which} matrix of {fan_in}x{fan_out}",
            suite=suite,
            is_large=rows * fan_in * fan_out > _LARGE_PRODUCT or fan_in * fan_out > _LARGE_ELEMENTS,
        )
        for name, builder, which in kinds
        for rows, fan_in, fan_out in shapes
    ]


def _chains() -> list[Workload]:
    workloads = []
    for name, (batch, m, n, k, l) in _CHAINS.items():  # noqa: E741 - the paper's name
        options = ChainOptions(batch=batch, m=m, n=n, k=k, l=l)
        sizes = f"batch {batch}, M {m}, N {n}, K {k}, L {l}"
        is_large = batch * m * l * (k + n) > _LARGE_PRODUCT
        for kind, build in (
            ("chain", contractions.gemm_chain),
            ("softmax-chain", contractions.softmax_chain),
        ):
            workloads.append(
                Workload(
                    name=f"{name}-{kind}",
                    build=partial(build, options),
                    description=f"{kind.replace('-', ' ')}, {sizes}",
                    suite="chains",
                    is_large=is_large,
                )
            )
    return workloads


def _attentions() -> list[Workload]:
    workloads = []
    for heads, shared, sequence, size, is_causal in _ATTENTIONS:
        options = AttentionOptions(
            heads=heads, key_value_heads=shared, sequence=sequence, head_size=size, is_causal=is_causal
        )
        kind = "-".join(["causal"] * is_causal + ["grouped"] * (shared < heads) + ["attention"])
        workloads.append(
            Workload(
                name=f"{kind}-{heads}x{sequence}x{size}",
                build=partial(contractions.attention, options),
                description=f"{heads} heads of {size}, {shared} of keys and values, sequence {sequence}",
                suite="chains",
                is_large=2 * heads * sequence * sequence * size > _LARGE_PRODUCT,
            )
        )
    return workloads


def _convolutions() -> list[Workload]:
    builds: dict[str, Callable[[], onnx.ModelProto]] = {
        name: partial(convolution, options) for name, options in _CONVOLUTIONS.items()
    }
    for name, (op, channels, image, kernel, stride) in _POOLINGS.items():
        builds[name] = partial(pooling, op, channels, image, kernel=kernel, stride=stride)
    builds |= _SMALL_NETWORKS
    builds["resnet-small"] = bottlenecks
    builds["resnext-small"] = partial(bottlenecks, BottleneckOptions(groups=8))
    builds["mobilenet-v2-small"] = inverted_residuals
    return [
        Workload(
            name=name, build=build, description=f"{name.replace('-', ' ')}, batch 1", suite="convolutions"
        )
        for name, build in builds.items()
    ]


def _networks() -> list[Workload]:
    return [
        Workload(name=name, build=build, description=text, suite="networks", is_large=True)
        for name, (build, text) in _NETWORKS.items()
    ]


def _layers() -> list[Workload]:
    workloads = []
    for network, rows in _LAYERS.items():
        for image, channels, filters, kernel, stride, groups in rows:
            options = ConvolutionOptions(
                channels=channels, filters=filters, kernel=kernel, stride=stride, groups=groups, image=image
            )
            kind = "depthwise " if groups == 0 else ""
            workloads.append(
                Workload(
                    name=f"{network}-{image}x{channels}x{filters}-k{kernel}s{stride}{'-depthwise' * (groups == 0)}",
                    build=partial(convolution, options),
                    description=f"{kind}{kernel}x{kernel} convolution of {network}, stride {stride}",
                    suite="convs",
                    is_large=True,
                )
            )
    for name, (channels, image, both, strides, kernels) in _CONVOLUTION_CHAINS.items():
        for has_relu in (False, True):
            chain = ConvolutionChainOptions(
                channels=channels,
                image=image,
                filters=both,
                strides=strides,
                kernels=kernels,
                has_relu=has_relu,
            )
            workloads.append(
                Workload(
                    name=f"{name}-convolutions{'-relu' * has_relu}",
                    build=partial(convolution_chain, chain),
                    description=f"Chimera's convolution chain {name.upper()}{' with a ReLU' * has_relu}",
                    suite="convs",
                    is_large=True,
                )
            )
    return workloads


def _random_stitches() -> list[Workload]:
    return [
        Workload(
            name=f"random-stitch-{seed}",
            build=partial(random_stitch, seed),
            description=f"random elementwise chain around dependent reductions, seed {seed}",
            suite="random-stitch",
        )
        for seed in SEEDS
    ]


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        *_models(),
        *_recurrent(),
        *_patterns("stitch", _STITCH),
        *_random_stitches(),
        *_patterns("bandwidth", _OUT_OF_CACHE),
        *_gemms("gemm", _GEMMS),
        *_gemms("gemm-square", _SQUARE_GEMMS),
        *_chains(),
        *_attentions(),
        *_convolutions(),
        *_networks(),
        *_layers(),
    )
}


def build(name: str) -> onnx.ModelProto:
    """Builds the model of the workload called `name`."""
    if name not in WORKLOADS:
        raise WorkloadError(
            f"no workload is called '{name}'; `python -m benchmarks.workloads --list` names them all"
        )
    return WORKLOADS[name].build()
