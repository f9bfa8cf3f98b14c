"""ATen's convolutions of single channels, of which IREE's importer takes those of one and two dims, not transposed.

One of volumes becomes the sum of convolutions of planes, one for each tap of the depth; a transposed one becomes a
convolution, by reversed filters, of the image with zeros between its elements.
"""

from __future__ import annotations

from typing import Any

import torch

from tilewright.frontends import pytorch_windows

_aten = torch.ops.aten


def convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: Any,
    output_padding: Any,
    groups: int,
) -> Any:
    """Spells out what IREE lacks, or computes wrongly."""
    if groups > 1 and weight.shape[0] == x.shape[1] == groups and weight.shape[1] == 1:
        if transposed:
            return _transposed(x, weight, bias, stride, padding, dilation, output_padding)
        if len(stride) == 3:
            return _of_volumes(x, weight, bias, stride, padding, dilation)
    return pytorch_windows.convolution(
        x, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


def _of_volumes(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Convolves planes, in f32 if the type is narrower, because the sums would be rounded for each tap."""
    kept = torch.promote_types(x.dtype, torch.float32)
    batch, channels, _, *plane = x.shape
    padded = _aten.constant_pad_nd(x, [0] * 4 + [padding[0]] * 2) if padding[0] else x
    planes, filters = padded.transpose(1, 2).to(kept), weight.to(kept)
    taps = weight.shape[2]
    depth = (planes.shape[1] - (taps - 1) * dilation[0] - 1) // stride[0] + 1
    total = None
    for tap in range(taps):
        begin = tap * dilation[0]
        part = planes[:, begin : begin + (depth - 1) * stride[0] + 1 : stride[0]]
        part = part.reshape(batch * depth, channels, *plane)
        numbers = stride[1:], padding[1:], dilation[1:], False, [0, 0], channels
        once = bias.to(kept) if bias is not None and tap == 0 else None
        convolved = _aten.convolution(part, filters[:, :, tap], once, *numbers)
        total = convolved if total is None else total + convolved
    assert total is not None
    return total.reshape(batch, depth, channels, *total.shape[2:]).transpose(1, 2).to(x.dtype)


def _transposed(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any
) -> Any:
    dims = len(stride)
    sides: list[int] = []
    around: list[int] = []
    for dim in range(dims):
        x = _spread(x, dim + 2, stride[dim])
        before = dilation[dim] * (weight.shape[dim + 2] - 1) - padding[dim]
        around.append(max(0, before))
        sides = [min(0, before), min(0, before) + output_padding[dim], *sides]
    if any(sides):
        x = _aten.constant_pad_nd(x, sides)
    filters = weight.flip(list(range(2, dims + 2)))
    return _aten.convolution(
        x, filters, bias, [1] * dims, around, dilation, False, [0] * dims, weight.shape[0]
    )


def _spread(x: Any, axis: int, stride: int) -> Any:
    """Puts `stride` - 1 zeros between the elements along an axis."""
    if stride == 1:
        return x
    behind = [0, 0] * (x.dim() - 1 - axis)
    wide = _aten.constant_pad_nd(x.unsqueeze(axis + 1), [*behind, 0, stride - 1]).flatten(axis, axis + 1)
    return _aten.slice.Tensor(wide, axis, 0, (x.shape[axis] - 1) * stride + 1)
