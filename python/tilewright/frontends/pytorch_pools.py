"""ATen's pools of a single image, of which IREE's importer takes batches only, and pools of open batches."""

from __future__ import annotations

import functools
from typing import Any

import torch

from tilewright.frontends.pytorch_windows import AVERAGE_POOLS, MAX_POOLS, average_pool, max_pool

_aten = torch.ops.aten

_SPATIAL_DIMS = {
    **AVERAGE_POOLS,
    **MAX_POOLS,
    _aten.adaptive_max_pool2d.default: 2,
    _aten.adaptive_max_pool3d.default: 3,
}


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {op: functools.partial(_pool, op, dims) for op, dims in _SPATIAL_DIMS.items()}


def _pool(pool: Any, dims: int, x: Any, *arguments: Any, **options: Any) -> Any:
    if x.dim() != dims + 1:
        of_windows = max_pool if pool in MAX_POOLS else average_pool if pool in AVERAGE_POOLS else None
        return of_windows(pool, x, *arguments, **options) if of_windows else NotImplemented
    results = pool(x.unsqueeze(0), *arguments, **options)
    return tuple(one.squeeze(0) for one in results) if isinstance(results, tuple) else results.squeeze(0)
