"""ATen's ops along a dim of a tensor without dims, or along several dims, which IREE's importer refuses, or with which
it does not return."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten._softmax.default: lambda x, *_: NotImplemented if x.dim() else torch.exp(x - x),
        _aten._log_softmax.default: lambda x, *_: NotImplemented if x.dim() else x - x,
        _aten.logsumexp.default: _log_sum,
        _aten.prod.dim_int: _product,
        _aten.gather.default: _gather,
    }


def _log_sum(x: Any, dim: Any, keepdim: bool = False) -> Any:  # noqa: FBT001, FBT002
    """IREE's importer refuses several dims, too."""
    kind = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    if x.dim() == 0:
        return x.to(kind).clone()
    if (len(dim) < 2 and x.is_floating_point()) or any(statically_known_true(size == 0) for size in x.shape):
        return NotImplemented
    wide = x.to(torch.promote_types(kind, torch.float32))
    most = wide.amax(dim, keepdim=True)
    most = torch.where(most.isinf(), 0.0, most)
    total = torch.log((wide - most).exp().sum(dim, keepdim=True)) + most
    return (total if keepdim else _aten.squeeze.dims(total, dim)).to(kind)


def _product(x: Any, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: FBT001, FBT002
    kind = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    return NotImplemented if x.dim() else x.to(kind).clone()


def _gather(x: Any, dim: int, index: Any, **_: Any) -> Any:
    if x.dim() and index.dim():
        return NotImplemented
    found = x.reshape(-1).index_select(0, index.reshape(-1))
    return found.reshape(index.shape)
