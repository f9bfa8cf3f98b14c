"""ATen's reads of elements by masks, with which IREE's importer does not return, and by several tensors of indices
whose number is open, which it refuses.

A mask becomes the indices of its places. The indexed dims become one, and their indices its index.
"""

from __future__ import annotations

import math
from typing import Any

import torch

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten.index.Tensor: _index,
        _aten.masked_select.default: _masked,
        _aten.nonzero.default: _nonzero,
    }


def _masked(x: Any, mask: Any) -> Any:
    x, mask = torch.broadcast_tensors(x, mask)  # type: ignore[no-untyped-call]
    return _aten.index.Tensor(x.reshape(-1), [mask.reshape(-1)])


def _nonzero(x: Any) -> Any:
    """IREE's compiler dies of a number, whose places have no indices."""
    return NotImplemented if x.dim() else _aten.nonzero(x.reshape(1)).narrow(1, 0, 0)


def _is_mask(index: Any) -> bool:
    return index is not None and index.dtype == torch.bool and index.dim() > 0


def _places(mask: Any) -> Any:
    """Returns the indices of a mask, one tensor for each of its dims."""
    return _aten.nonzero(mask).unbind(1)


def _index(x: Any, indices: Any) -> Any:
    if any(map(_is_mask, indices)):
        places = [_places(index) if _is_mask(index) else (index,) for index in indices]
        return _aten.index.Tensor(x, [one for some in places for one in some])
    indexed = [axis for axis, index in enumerate(indices) if index is not None]
    used = [indices[axis] for axis in indexed]
    if len(used) < 2 or any(index.dtype == torch.bool for index in used) or not _has_open_dims(used):
        return NotImplemented
    sizes = [x.shape[axis] for axis in indexed]
    place: Any = 0
    for index, size in zip(used, sizes, strict=True):
        place = place * size + torch.where(index < 0, index + size, index)
    others = [axis for axis in range(x.dim()) if axis not in indexed]
    rows = x.permute([*indexed, *others]).reshape([math.prod(sizes), *(x.shape[axis] for axis in others)])
    found = _aten.index.Tensor(rows, [place])
    if indexed[-1] - indexed[0] + 1 != len(indexed):  # the dims of the points come first
        return found
    first = list(range(indexed[0], indexed[0] + place.dim()))
    return found.movedim(list(range(place.dim())), first)


def _has_open_dims(indices: Any) -> bool:
    return any(isinstance(size, torch.SymInt) for index in indices for size in index.shape)
