"""ATen's samples of volumes at the points of a grid, which IREE's importer lacks; PyTorch spells out those of images
only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

_aten = torch.ops.aten

_LINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1
"""PyTorch's numbers of the ways to interpolate, and to go on outside; the third way is to reflect."""


def decompositions() -> dict[Any, Any]:
    """Returns the op to spell out, with the function that does so."""
    return {_aten.grid_sampler_3d.default: _sample}


def _sample(x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:  # noqa: FBT001
    sizes = x.shape[2:]
    if interpolation not in (_LINEAR, _NEAREST) or any(statically_known_true(size == 0) for size in x.shape):
        return NotImplemented
    # The last coordinate of a point is that of the first dim.
    points = [
        _place(grid[..., -1 - axis], size, padding, align_corners=align_corners)
        for axis, size in enumerate(sizes)
    ]
    if interpolation == _NEAREST:
        return _elements(x, [point.round() for point in points])
    lows = [point.floor() for point in points]
    total: Any = 0
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        ends = [low + step for low, step in zip(lows, corner, strict=True)]
        weight = math.prod(1 - (point - end).abs() for point, end in zip(points, ends, strict=True))
        total = total + _elements(x, ends) * weight.unsqueeze(1)
    return total


def _place(coordinate: Any, size: int, padding: int, *, align_corners: bool) -> Any:
    """Returns where a coordinate from -1 to 1 lies among the elements of a dim."""
    edge = 0.0 if align_corners else 0.5
    place = (coordinate + 1) * (size / 2 - 0.5 + edge) - edge
    if padding == _ZEROS:
        return place.nan_to_num(-2.0).clamp(-2, size + 1)  # weights of points far away are numbers
    if padding != _BORDER:
        place = _reflected(place, -edge, size - 1 + edge)
    return place.clamp(0, size - 1)


def _reflected(place: Any, low: float, high: float) -> Any:
    if low == high:
        return torch.zeros_like(place)
    way = (place - low).abs()
    turns = (way / (high - low)).floor()
    rest = torch.fmod(way, high - low)
    is_back = torch.remainder(turns, 2) == 1
    return torch.where(is_back, high - rest, low + rest)


def _elements(x: Any, places: Sequence[Any]) -> Any:
    """Returns the elements of all channels at whole places, and 0 for those outside."""
    index: Any = 0
    is_inside: Any = True
    for place, size in zip(places, x.shape[2:], strict=True):
        is_inside = is_inside & (place >= 0) & (place < size)
        index = index * size + place.clamp(0, size - 1).nan_to_num(0.0).to(torch.int64)
    batch, channels = x.shape[:2]
    flat = index.reshape(batch, 1, -1).expand(batch, channels, index[0].numel())
    found = torch.gather(x.reshape(batch, channels, -1), 2, flat)
    return torch.where(is_inside.unsqueeze(1), found.reshape(batch, channels, *index.shape[1:]), 0.0)
