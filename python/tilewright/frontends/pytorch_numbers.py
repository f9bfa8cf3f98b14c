"""ATen's ops along a dim of a tensor without dims, which IREE's importer refuses, or with which it does not return."""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten._softmax.default: lambda x, *_: NotImplemented if x.dim() else torch.exp(x - x),
        _aten._log_softmax.default: lambda x, *_: NotImplemented if x.dim() else x - x,
        _aten.logsumexp.default: lambda x, *_: NotImplemented if x.dim() else x.clone(),
        _aten.prod.dim_int: _product,
        _aten.gather.default: _gather,
    }


def _product(x: Any, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: FBT001, FBT002
    return NotImplemented if x.dim() else x.to(dtype or x.dtype)


def _gather(x: Any, dim: int, index: Any, **_: Any) -> Any:
    if x.dim() and index.dim():
        return NotImplemented
    found = x.reshape(-1).index_select(0, index.reshape(-1))
    return found.reshape(index.shape)
