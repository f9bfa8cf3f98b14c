"""ATen's resizes of images with antialiasing and fixed sizes, which IREE's importer lacks, as products with matrices.

Each result along a dim is a weighted mean of the elements around its centre; where an image becomes smaller, the
kernel is stretched by the factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_aten = torch.ops.aten

_CUBIC = -0.5
"""The parameter of Keys' kernel that PyTorch takes with antialiasing."""


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten._upsample_bilinear2d_aa.default: _bilinear,
        _aten._upsample_bicubic2d_aa.default: _bicubic,
    }


def _bilinear(x: Any, size: Any, corners: Any, down: Any = None, across: Any = None) -> Any:
    return _resize(x, size, corners, (down, across), _triangle, 1)


def _bicubic(x: Any, size: Any, corners: Any, down: Any = None, across: Any = None) -> Any:
    return _resize(x, size, corners, (down, across), _keys, 2)


def _resize(x: Any, size: Any, corners: Any, factors: Any, kernel: Callable[[Any], Any], reach: int) -> Any:
    if not x.is_floating_point() or not all(isinstance(length, int) for length in (*x.shape[2:], *size)):
        return NotImplemented
    kept = torch.promote_types(x.dtype, torch.float32)
    rows, columns = (
        _weights(old, new, _step(old, new, corners, factor), kernel, reach, kept)
        for old, new, factor in zip(x.shape[2:], size, factors, strict=True)
    )
    return torch.matmul(torch.matmul(rows, x.to(kept)), columns.transpose(0, 1)).to(x.dtype)


def _step(old: int, new: int, corners: Any, factor: float | None) -> float:
    """Returns the distance of the centres of two results, in elements."""
    if corners:
        return (old - 1) / (new - 1) if new > 1 else 0.0
    return 1 / factor if factor is not None and factor > 0 else old / new


def _weights(old: int, new: int, step: float, kernel: Callable[[Any], Any], reach: int, dtype: Any) -> Any:
    """Returns the matrix of [results, elements] along a dim."""
    stretch = max(step, 1.0)
    centres = ((torch.arange(new, dtype=dtype) + 0.5) * step).unsqueeze(1)
    begins = (centres - reach * stretch + 0.5).clamp(min=0).floor()
    ends = (centres + reach * stretch + 0.5).floor()
    places = torch.arange(old, dtype=dtype)
    weights = kernel(((places - centres + 0.5) / stretch).abs())
    weights = torch.where((places >= begins) & (places < ends), weights, 0.0)
    return weights / weights.sum(1, keepdim=True)


def _triangle(distance: Any) -> Any:
    return (1 - distance).clamp(min=0)


def _keys(x: Any) -> Any:
    near = ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * _CUBIC
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))
