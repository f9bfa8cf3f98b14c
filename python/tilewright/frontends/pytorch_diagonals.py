"""ATen's writes of diagonals, which IREE's importer refuses."""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the op to spell out, with the function that does so."""
    return {_aten.diagonal_scatter.default: _diagonal_scatter}


def _diagonal_scatter(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A row has one element of the diagonal at most, and all elements of the row read it. Those on the diagonal take
    it."""
    if source.numel() == 0:
        return x.clone()
    matrices = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = (torch.arange(size) for size in matrices.shape[-2:])
    place = (rows - max(-offset, 0)).clamp(0, source.shape[-1] - 1)
    is_on = (columns - rows.unsqueeze(-1)) == offset
    written = torch.where(is_on, source.to(x.dtype).index_select(-1, place).unsqueeze(-1), matrices)
    return written.movedim((-2, -1), (dim1, dim2))
