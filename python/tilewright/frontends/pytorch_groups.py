"""Products of groups of rows with a matrix for each group, as layers of experts compute them.

IREE's importer has no op for them. How many rows a group has is known only when the program runs.
"""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten

_ROWS_OF_OPEN = 16
"""Rows of a block if the number of rows is open."""


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    table: dict[Any, Any] = {_aten._grouped_mm.default: _grouped_mm}
    # The transformers library, once imported, has an op of its own for the types that PyTorch's does not take.
    if hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        table[torch.ops.transformers.grouped_mm_fallback.default] = _products
    return table


def _grouped_mm(x: Any, weights: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    is_ragged = offs is not None
    if bias is not None or weights.dim() != 3 or x.dim() != (2 if is_ragged else 3):
        return NotImplemented
    result = _products(x, weights, offs) if is_ragged else torch.bmm(x, weights)
    return result if out_dtype is None else result.to(out_dtype)


def _products(x: Any, weights: Any, ends: Any) -> Any:
    """Multiplies rows [rows, in] with one of the matrices [groups, in, out]: group g ends before row `ends[g]`.

    Groups are filled up to blocks of equal size, so that each block needs one matrix. A row behind the last group is
    zero.
    """
    rows, groups = x.shape[0], weights.shape[0]
    size = max(rows // groups, 1) if isinstance(rows, int) else _ROWS_OF_OPEN
    ends = ends.to(torch.int64)
    starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    block_ends = torch.cumsum((ends - starts + size - 1) // size, 0)
    block_starts = torch.cat([torch.zeros_like(ends[:1]), block_ends[:-1]])

    blocks = torch.arange((rows + groups * (size - 1)) // size)
    group = _group_of(blocks, block_ends)
    first = starts[group] + (blocks - block_starts[group]) * size
    taken = (first.unsqueeze(-1) + torch.arange(size)).clamp(max=rows - 1)
    products = torch.bmm(x[taken], weights[group]).flatten(0, 1)

    numbers = torch.arange(rows)
    group = _group_of(numbers, ends)
    place = block_starts[group] * size + numbers - starts[group]
    is_in_group = (numbers < ends[-1]).unsqueeze(-1)
    return torch.where(is_in_group, products[place.clamp(max=products.shape[0] - 1)], 0.0)


def _group_of(numbers: Any, ends: Any) -> Any:
    """Returns the group of each number, or the last group for numbers behind it."""
    return (ends <= numbers.unsqueeze(-1)).sum(-1).clamp(max=ends.shape[0] - 1)
