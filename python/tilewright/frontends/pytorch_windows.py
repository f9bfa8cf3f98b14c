"""ATen's convolutions and pools of an open batch with one window along a dim, and elements behind that window.

IREE's compiler displaces such a window, or does not compile it. What lies behind it is cut off, and the padding becomes
an op of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

_aten = torch.ops.aten
MAX_POOLS = {_aten.max_pool2d_with_indices.default: 2, _aten.max_pool3d_with_indices.default: 3}
AVERAGE_POOLS = {_aten.avg_pool2d.default: 2, _aten.avg_pool3d.default: 3}
"""Pools, with the number of dims of their images."""


@dataclass(frozen=True)
class _Windows:
    """The windows of an op, by dim of the image."""

    sizes: list[int]
    kernel: list[int]
    strides: list[int]
    padding: list[int]
    dilations: list[int]

    def reach(self, dim: int) -> int:
        return (self.kernel[dim] - 1) * self.dilations[dim] + 1

    def unused(self, dim: int) -> int:
        """Returns how many elements lie behind the only window of a dim, its padding included; 0 for other dims."""
        behind = self.sizes[dim] + 2 * self.padding[dim] - self.reach(dim)
        return behind if 0 < behind < self.strides[dim] else 0

    def is_same_with_ceil(self) -> bool:
        """Returns True if `ceil_mode` adds no windows; none begins in the padding behind the image."""
        for dim, size in enumerate(self.sizes):
            left = size + 2 * self.padding[dim] - self.reach(dim)
            next_begin = (left // self.strides[dim] + 1) * self.strides[dim]
            if left % self.strides[dim] and next_begin < size + self.padding[dim]:
                return False
        return True

    def cut(self, x: Any, fill: float) -> Any:
        """Returns the image with its padding, without what no window reads."""
        dims = len(self.sizes)
        sides: list[int] = []
        for dim in range(dims):
            after = self.padding[dim] - self.unused(dim)
            if after < 0:
                x = _aten.slice.Tensor(x, dim - dims, 0, max(0, self.sizes[dim] + after))
            sides = [min(self.padding[dim], self.reach(dim)), max(0, after), *sides]
        return _aten.constant_pad_nd(x, sides, fill) if any(sides) else x

    def counts(self, like: Any) -> Any:
        """Returns how many elements of each window are not padding."""
        dims = len(self.sizes)
        kind = torch.promote_types(like.dtype, torch.float32)
        counts = torch.ones([1] * dims, dtype=kind)
        for dim in range(dims):
            number = (self.sizes[dim] + 2 * self.padding[dim] - self.reach(dim)) // self.strides[dim] + 1
            begins = torch.arange(number) * self.strides[dim] - self.padding[dim]
            places = begins[:, None] + torch.arange(self.kernel[dim]) * self.dilations[dim]
            inside = ((places >= 0) & (places < self.sizes[dim])).sum(1).to(kind)
            counts = counts * inside.reshape([-1] + [1] * (dims - 1 - dim))
        return counts


def max_pool(
    pool: Any,
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: Any = False,  # noqa: FBT002
) -> Any:
    windows = _open_windows(x, MAX_POOLS[pool], kernel, stride or kernel, padding, dilation, ceil=ceil)
    if windows is None:
        return NotImplemented
    lowest = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    image = windows.cut(x, lowest)
    values, places = pool(image, kernel, stride, 0, dilation)
    index = torch.zeros_like(places)
    unit, old = 1, 1
    for dim in reversed(range(len(windows.sizes))):
        width = image.shape[dim - len(windows.sizes)]
        index = index + ((places // unit) % width - windows.padding[dim]) * old
        unit, old = unit * width, old * windows.sizes[dim]
    return values, index


def average_pool(
    pool: Any,
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: Any = False,  # noqa: FBT002
    counts_padding: Any = True,  # noqa: FBT002
    divisor: Any = None,
) -> Any:
    dims = AVERAGE_POOLS[pool]
    if isinstance(padding, Sequence) and len(padding) < dims:  # IREE's compiler does not return
        return pool(x, kernel, stride, [*padding] * dims, ceil, counts_padding, divisor)
    windows = _open_windows(x, dims, kernel, stride or kernel, padding, 1, ceil=ceil)
    if windows is None or not x.is_floating_point():
        return NotImplemented
    image = windows.cut(x, 0.0)
    if counts_padding or divisor is not None or not any(windows.padding):
        more = () if divisor is None else (divisor,)
        return pool(image, kernel, stride, 0, False, True, *more)
    factors = math.prod(windows.kernel) / windows.counts(x)
    return (pool(image, kernel, stride, 0, False, True) * factors).to(x.dtype)


def convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, *rest: Any
) -> Any:
    windows = (
        None if transposed else _open_windows(x, len(stride), weight.shape[2:], stride, padding, dilation)
    )
    if windows is None:
        return NotImplemented
    zeros = [0] * len(stride)
    return _aten.convolution(windows.cut(x, 0.0), weight, bias, stride, zeros, dilation, transposed, *rest)


def _open_windows(x: Any, dims: int, *numbers: Any, ceil: bool = False) -> _Windows | None:
    """Returns the windows of an open batch if elements lie behind the only window along a dim, or None; also None if
    `ceil` adds windows."""
    whole = list(x.shape)
    if len(whole) != dims + 2 or not any(isinstance(size, torch.SymInt) for size in whole[:2]):
        return None
    sizes = whole[2:]
    if not all(isinstance(size, int) for size in sizes):
        return None
    windows = _Windows(sizes, *(_of_each_dim(number, dims) for number in numbers))
    if ceil and not windows.is_same_with_ceil():
        return None
    return windows if any(windows.unused(dim) for dim in range(dims)) else None


def _of_each_dim(numbers: int | Sequence[int], dims: int) -> list[int]:
    if isinstance(numbers, int):
        return [numbers] * dims
    return list(numbers) * dims if len(numbers) == 1 else list(numbers)
