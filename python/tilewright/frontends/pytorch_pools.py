"""ATen's pools of a single image: IREE's importer takes batches only."""

from __future__ import annotations

import functools
from typing import Any

import torch

_aten = torch.ops.aten

_SPATIAL_DIMS = {
    _aten.avg_pool2d.default: 2,
    _aten.avg_pool3d.default: 3,
    _aten.max_pool2d_with_indices.default: 2,
    _aten.max_pool3d_with_indices.default: 3,
    _aten.adaptive_max_pool2d.default: 2,
    _aten.adaptive_max_pool3d.default: 3,
}


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {op: functools.partial(_of_one_image, op, dims) for op, dims in _SPATIAL_DIMS.items()}


def _of_one_image(pool: Any, dims: int, x: Any, *arguments: Any, **options: Any) -> Any:
    if x.dim() != dims + 1:
        return NotImplemented
    results = pool(x.unsqueeze(0), *arguments, **options)
    return tuple(one.squeeze(0) for one in results) if isinstance(results, tuple) else results.squeeze(0)
