"""ATen's bags of embeddings (`torch.nn.EmbeddingBag`) by a gather and a reduction.

IREE's importer takes sums only, and ignores the weights of the samples.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot

_aten = torch.ops.aten

_SUM, _MEAN, _MAX = 0, 1, 2
"""Modes of the op, by their numbers."""


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten._embedding_bag.default: _embedding_bag,
        _aten._embedding_bag_forward_only.default: _embedding_bag,
    }


def _embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,  # noqa: FBT001, FBT002
    mode: int = _SUM,
    sparse: bool = False,  # noqa: FBT001, FBT002
    per_sample_weights: Any = None,
    include_last_offset: bool = False,  # noqa: FBT001, FBT002
    padding_idx: int = -1,
) -> tuple[Any, Any, Any, Any]:
    """Reduces the rows of each bag. The other three results are for a gradient: they are zeros here.

    Bags that are all of one length are a dim of their own. Otherwise each bag looks at all rows for its own, because
    the bounds of bags are known only when the program runs.
    """
    bags = offsets.shape[0] - include_last_offset
    rows = torch.nn.functional.embedding(indices, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    is_used = torch.ones_like(indices, dtype=torch.bool) if padding_idx < 0 else indices != padding_idx
    length = _common_length(offsets, indices.shape[0], bags)
    if length is not None:
        rows, is_used = rows.reshape(bags, length, -1), is_used.reshape(bags, length)
    else:
        numbers = torch.arange(indices.shape[0], device=indices.device)
        ends = torch.cat([offsets[1:], torch.full_like(offsets[:1], indices.shape[0])])[:bags].unsqueeze(-1)
        is_used = (numbers >= offsets[:bags].unsqueeze(-1)) & (numbers < ends) & is_used
        rows = rows.unsqueeze(0)
    unused = torch.zeros_like(offsets)
    return _reduced(rows, is_used, mode), unused, unused, unused


def _reduced(rows: Any, is_used: Any, mode: int) -> Any:
    """Reduces rows, [bags or 1, rows, width], where `is_used`, [bags, rows], is set; a bag without rows is zeros."""
    used = is_used.unsqueeze(-1)
    if mode == _MAX:
        return torch.where(used.any(1), torch.where(used, rows, float("-inf")).amax(1), 0.0)
    total = torch.where(used, rows, 0.0).sum(1)
    return total / is_used.sum(1, keepdim=True).clamp(min=1).to(total.dtype) if mode == _MEAN else total


def _common_length(offsets: Any, indices: int, bags: int) -> int | None:
    """Returns the length of all bags, if their offsets are known to be its multiples: PyTorch makes such offsets of
    indices that have a row for each bag."""
    tracing = get_proxy_mode()
    slot = get_proxy_slot(offsets, tracing.tracer, None) if tracing is not None else None
    node = getattr(getattr(slot, "proxy", None), "node", None)
    if node is None or node.target is not _aten.arange.start_step or node.args[0] != 0:
        return None
    step = node.args[2]
    return step if isinstance(step, int) and step * bags == indices else None
