"""ATen's copies of views, which IREE's importer refuses, as views that are copied."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils import _pytree

_aten = torch.ops.aten

_VIEWS = (
    "as_strided.default", "diagonal.default", "expand.default", "permute.default", "select.int", "slice.Tensor",
    "split.Tensor", "split_with_sizes.default", "squeeze.default", "squeeze.dim", "squeeze.dims", "t.default",
    "transpose.int", "unbind.int", "unfold.default", "unsqueeze.default", "view.default",
)  # fmt: skip


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _overload(f"{name}_copy.{overload}"): functools.partial(_copied, _overload(f"{name}.{overload}"))
        for name, overload in (view.split(".") for view in _VIEWS)
    }


def _overload(text: str) -> Any:
    name, overload = text.split(".")
    return getattr(getattr(_aten, name), overload)


def _copied(view: Any, *arguments: Any, **named: Any) -> Any:
    return _pytree.tree_map(torch.clone, view(*arguments, **named))
