"""Convolutions one by one, their chains, and networks of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnx

from benchmarks.workloads import networks, restoration
from benchmarks.workloads.convolutional import (
    BottleneckOptions,
    ConvolutionChainOptions,
    ConvolutionOptions,
    bottlenecks,
    convolution,
    convolution_chain,
    inverted_residuals,
    pooling,
)
from benchmarks.workloads.vision import SwinOptions, swin
from benchmarks.workloads.workload import Workload

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
    "rednet-50": (restoration.rednet50, "RedNet-50, 1x3x224x224"),
    "sar-drn": (restoration.sar_drn, "SAR-DRN, 1x1x256x256"),
    "nafnet-level": (restoration.nafnet_level, "two blocks of NAFNet, 1x64x128x128"),
    "restormer-level": (restoration.restormer_level, "two blocks of Restormer, 1x48x64x64"),
    "bsrn-level": (restoration.bsrn_level, "block of BSRN, 1x64x64x64"),
    "swin-b": (
        partial(swin, SwinOptions(depths=(2, 2, 18, 2), heads=(4, 8, 16, 32), hidden=128)),
        "Swin-B, windows of 7, 1x3x224x224",
    ),
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
    "rednet-small": partial(restoration.rednet50, 32, (1, 1), 32, 10),
    "sar-drn-small": partial(restoration.sar_drn, 16, 8),
    "nafnet-small": partial(restoration.nafnet_level, 16, 8, 1),
    "restormer-small": partial(restoration.restormer_level, 16, 8, 2, 1),
    "bsrn-small": partial(restoration.bsrn_level, 16, 24),
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


def convolutions() -> list[Workload]:
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


def convolutional_networks() -> list[Workload]:
    return [
        Workload(name=name, build=build, description=text, suite="networks", is_large=True)
        for name, (build, text) in _NETWORKS.items()
    ]


def convolution_chains() -> dict[str, ConvolutionChainOptions]:
    """Returns the chains of Chimera's table V by name: c1, and c1-relu with a ReLU between its convolutions."""
    return {
        name + "-relu" * has_relu: ConvolutionChainOptions(
            channels=channels,
            image=image,
            filters=filters,
            strides=strides,
            kernels=kernels,
            has_relu=has_relu,
        )
        for name, (channels, image, filters, strides, kernels) in _CONVOLUTION_CHAINS.items()
        for has_relu in (False, True)
    }


def layers() -> list[Workload]:
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
    for number, (channels, size, squeezed) in enumerate(restoration.SQUEEZED):
        workloads.append(
            Workload(
                name=f"efficientnet-m{number}",
                build=partial(restoration.squeeze_and_excite_module, channels, size, squeezed),
                description=f"squeeze-and-excite of EfficientNet-B0, 1x{channels}x{size}x{size}: Souffle's M{number}",
                suite="convs",
                is_large=True,
            )
        )
    for name, chain in convolution_chains().items():
        title, _, relu = name.partition("-")
        workloads.append(
            Workload(
                name=f"{title}-convolutions{'-relu' * bool(relu)}",
                build=partial(convolution_chain, chain),
                description=f"Chimera's convolution chain {title.upper()}{' with a ReLU' * bool(relu)}",
                suite="convs",
                is_large=True,
            )
        )
    return workloads
