"""ATen's running extremes and running logarithms of sums, by log2(n) steps along rows.

IREE's importer has no op for the extremes. It computes the logarithms of sums of exponentials as these, which overflow.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten.cummax.default: functools.partial(_running, operator.ge),
        _aten.cummin.default: functools.partial(_running, operator.le),
        _aten.logcumsumexp.default: _running_log_sum,
        _aten.cumprod.default: _running_product,
    }


def _running_product(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """IREE's importer takes tensors with dims only, and no type of the result."""
    kind = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if x.dim() == 0:
        return x.to(kind)
    return NotImplemented if dtype is None else _aten.cumprod.default(x.to(kind), dim).to(kind)


def _running_log_sum(x: Any, dim: int) -> Any:
    if x.dim() == 0 or not x.is_floating_point():
        return x.clone() if x.dim() == 0 else NotImplemented
    values = x.movedim(dim, -1)
    covered = 1
    while covered < values.shape[-1]:
        values = _joined(values, _log_add(values[..., covered:], values[..., :-covered]), covered)
        covered *= 2
    return values.movedim(-1, dim)


def _log_add(x: Any, y: Any) -> Any:
    """Returns log(exp(x) + exp(y)). The difference of infinities counts nowhere."""
    large = torch.maximum(x, y)
    return torch.where(large.isinf(), large, large + torch.log1p(torch.exp(-(x - y).abs())))


def _running(wins: Any, x: Any, dim: int) -> tuple[Any, Any]:
    """Returns the extremes of the elements up to each one, and their positions: the last one of equal elements.

    Each round doubles the number of elements that a result covers. NaN wins over everything.
    """
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    values = x.movedim(dim, -1)
    places = torch.arange(values.shape[-1]).expand(values.shape)
    covered = 1
    while covered < values.shape[-1]:
        later, earlier = values[..., covered:], values[..., :-covered]
        is_later = wins(later, earlier)
        if x.is_floating_point():
            is_later = torch.where(earlier.isnan(), later.isnan(), is_later | later.isnan())
        values = _joined(values, torch.where(is_later, later, earlier), covered)
        places = _joined(
            places, torch.where(is_later, places[..., covered:], places[..., :-covered]), covered
        )
        covered *= 2
    return values.movedim(-1, dim), places.movedim(-1, dim)


def _joined(first: Any, rest: Any, length: int) -> Any:
    return torch.cat([first[..., :length], rest], -1)
