"""Small PyTorch modules of KernelBench's kinds: products with what follows them, norms and reductions, attention,
networks of several layers, and convolutions. A call takes tens of microseconds to some milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Case = tuple[nn.Module, tuple[Any, ...]]
"""A module and the arguments of a call."""


class Of(nn.Module):
    """A function of the arguments, and of a module's result if there is one."""

    def __init__(self, function: Callable[..., Any], module: nn.Module | None = None) -> None:
        super().__init__()
        self.function, self.module = function, module

    def forward(self, *arguments: Any) -> Any:
        """Applies both."""
        return self.function(*arguments if self.module is None else (self.module(*arguments),))


class Attention(nn.Module):
    """Causal self-attention with its projections, as in minGPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        """Attends over [batch, length, width]."""
        batch, length, width = x.shape
        split = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = split.unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A Transformer block with norms in front."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        """Transforms [batch, length, width]."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GatedMlp(nn.Module):
    """A gated network of two layers behind a norm, as in Llama."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up, self.down = (nn.Linear(*size, bias=False) for size in _gated(width, inner))

    def forward(self, x: Any) -> Any:
        """Transforms [rows, width]."""
        y = self.norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def _gated(width: int, inner: int) -> tuple[tuple[int, int], ...]:
    return (width, inner), (width, inner), (inner, width)


class Residual(nn.Module):
    """A block of ResNet: two 3 x 3 convolutions with batch norm, and its input added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Any) -> Any:
        """Transforms [batch, channels, height, width]."""
        return functional.relu(x + self.layers(x))


class Separable(nn.Module):
    """A block of MobileNetV2: a pointwise, a depthwise and a pointwise convolution, and its input added."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, inner, 1),
            nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, padding=1, groups=inner),
            nn.ReLU6(),
            nn.Conv2d(inner, channels, 1),
        )

    def forward(self, x: Any) -> Any:
        """Transforms [batch, channels, height, width]."""
        return x + self.layers(x)


def _rows(*shape: int) -> tuple[Any, ...]:
    return (torch.randn(*shape),)


def _linear(columns: int, function: Callable[[Any], Any]) -> Case:
    return Of(function, nn.Linear(512, columns)), _rows(128, 512)


def _convolution(function: Callable[[Any], Any], *, size: int = 56, **options: Any) -> Case:
    return Of(function, nn.Conv2d(32, 64, 3, **options)), _rows(1, 32, size, size)


def _mlp(*widths: int) -> nn.Module:
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


MODULES: dict[str, Callable[[], Case]] = {
    "matmul-gelu-softmax": lambda: _linear(512, lambda y: functional.gelu(y).softmax(-1)),
    "matmul-swish-scale": lambda: _linear(1024, lambda y: y * torch.sigmoid(y) * 2.0),
    "matmul-max-logsumexp": lambda: _linear(
        1024, lambda y: functional.mish(y.clamp(-10, 10) * 0.5).logsumexp(-1)
    ),
    "matmul-sigmoid-sum": lambda: _linear(512, lambda y: torch.sigmoid(y).sum(-1)),
    "matmul-layer-norm-gelu": lambda: _linear(
        512, lambda y: functional.gelu(functional.layer_norm(y, (512,)))
    ),
    "matmul-divide-relu": lambda: _linear(2048, lambda y: functional.relu(y / 1.5)),
    "matmul-square": lambda: (Of(torch.matmul), (torch.randn(384, 384), torch.randn(384, 384))),
    "matmul-batched": lambda: (Of(torch.bmm), (torch.randn(16, 64, 128), torch.randn(16, 128, 64))),
    "softmax": lambda: (nn.Softmax(-1), _rows(256, 4096)),
    "log-softmax": lambda: (nn.LogSoftmax(-1), _rows(256, 1000)),
    "layer-norm": lambda: (nn.LayerNorm(1024), _rows(512, 1024)),
    "rms-norm": lambda: (nn.RMSNorm(1024), _rows(512, 1024)),
    "group-norm": lambda: (nn.GroupNorm(8, 64), _rows(4, 64, 32, 32)),
    "l2-norm": lambda: (Of(lambda x: functional.normalize(x, dim=-1)), _rows(512, 1024)),
    "mean-of-columns": lambda: (Of(lambda x: x.mean(0)), _rows(1024, 1024)),
    "cross-entropy": lambda: (
        Of(lambda x: -(x.log_softmax(-1) * functional.softmax(x * 0.5, -1)).sum(-1).mean()),
        _rows(128, 4096),
    ),
    "attention-scores": lambda: (
        Of(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v)),
        tuple(torch.randn(1, 8, 256, 64) for _ in range(3)),
    ),
    "attention": lambda: (Attention(256, 8), _rows(1, 128, 256)),
    "attention-wide": lambda: (Attention(768, 12), _rows(1, 128, 768)),
    "attention-relu": lambda: (
        Of(lambda q, k, v: functional.relu(q @ k.mT * 0.125) @ v),
        tuple(torch.randn(1, 8, 256, 64) for _ in range(3)),
    ),
    "mlp": lambda: (_mlp(256, 512, 512, 64), _rows(64, 256)),
    "mlp-deep": lambda: (_mlp(512, *[512] * 6, 10), _rows(32, 512)),
    "mlp-gated": lambda: (GatedMlp(512, 1376), _rows(64, 512)),
    "transformer-block": lambda: (Block(256, 8), _rows(1, 128, 256)),
    "conv-relu-bias": lambda: (
        Of(lambda y: functional.relu(y) + 0.5, nn.Conv2d(3, 16, 3)),
        _rows(4, 3, 64, 64),
    ),
    "conv-gelu-mean": lambda: _convolution(lambda y: functional.gelu(y).mean((-1, -2))),
    "conv-stride-hardswish": lambda: _convolution(functional.hardswish, stride=2),
    "conv-tanh-pool": lambda: _convolution(lambda y: functional.max_pool2d(torch.tanh(y), 2)),
    "residual-block": lambda: (Residual(64), _rows(1, 64, 28, 28)),
    "separable-block": lambda: (Separable(32, 192), _rows(1, 32, 28, 28)),
}
