"""The places of ATen's extremes: IREE passes over NaN, which is the largest and the smallest number to PyTorch."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch

_aten = torch.ops.aten

_has_no_nan: ContextVar[bool] = ContextVar("_has_no_nan", default=False)
"""True while an extreme of numbers without NaN is spelled out, which IREE computes right."""


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten.max.dim: functools.partial(_extreme, _aten.max.dim, -math.inf),
        _aten.min.dim: functools.partial(_extreme, _aten.min.dim, math.inf),
        _aten.argmax.default: functools.partial(_place, _aten.max.dim),
        _aten.argmin.default: functools.partial(_place, _aten.min.dim),
    }


@contextlib.contextmanager
def _without_nan() -> Iterator[None]:
    token = _has_no_nan.set(True)
    try:
        yield
    finally:
        _has_no_nan.reset(token)


def _extreme(
    reduce: Any,
    least: float,
    x: Any,
    dim: int,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Any:
    """Returns the extremes along a dim and their places: those of the first NaN, where there is one."""
    if x.dim() == 0:
        return x.clone(), torch.zeros([], dtype=torch.int64)
    if not x.is_floating_point() or _has_no_nan.get():
        return NotImplemented
    is_nan = x.isnan()
    with _without_nan():
        value, place = reduce(torch.where(is_nan, least, x), dim, keepdim)
        anywhere, first = _aten.max.dim(is_nan.to(torch.int32), dim, keepdim)
    return torch.where(anywhere > 0, math.nan, value), torch.where(anywhere > 0, first, place)


def _place(
    reduce: Any,
    x: Any,
    dim: int | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Any:
    """Returns the place of an extreme along a dim, or in the flattened tensor."""
    if not x.is_floating_point():
        return NotImplemented
    if dim is not None:
        return reduce(x, dim, keepdim)[1]
    place = reduce(x.reshape(-1), 0, False)[1]
    return place.reshape([1] * x.dim()) if keepdim else place
