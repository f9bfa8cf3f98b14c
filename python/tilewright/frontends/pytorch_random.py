"""ATen's random numbers that IREE's importer lacks, or of which it makes fractions instead of whole numbers."""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten.randint.default: lambda high, size, **options: _whole(0, high, size, **options),
        _aten.randint.low: _whole,
        _aten.randint_like.default: lambda x, high, **options: _whole_like(x, 0, high, **options),
        _aten.randint_like.low_dtype: _whole_like,
        _aten.normal.Tensor_Tensor: _normal,
        _aten.normal.Tensor_float: _normal,
        _aten.normal.float_Tensor: _normal,
    }


def _whole(low: int, high: int, size: Any, *, dtype: Any = None, **_: Any) -> Any:
    if dtype is None or not dtype.is_floating_point:
        return NotImplemented
    return _aten.randint.low(low, high, size, dtype=torch.int64).to(dtype)


def _whole_like(x: Any, low: int, high: int, *, dtype: Any = None, **_: Any) -> Any:
    return _aten.randint.low(low, high, x.shape, dtype=torch.int64).to(dtype or x.dtype)


def _normal(mean: Any, deviation: Any = 1.0, **_: Any) -> Any:
    tensors = [one for one in (mean, deviation) if isinstance(one, torch.Tensor)]
    shape = torch.broadcast_shapes(*(one.shape for one in tensors))  # type: ignore[no-untyped-call]
    return torch.randn(shape, dtype=tensors[0].dtype) * deviation + mean
