"""ATen's ops that return each value once, which IREE's importer lacks: reads of the first of each run of values."""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {_aten._unique2.default: _unique, _aten.unique_consecutive.default: _unique_in_a_row}


def _unique(x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:  # noqa: FBT001, FBT002
    """Sorts always: any order is right where none is asked for."""
    if not _has_known_size(x):
        return NotImplemented
    values, order = x.reshape(-1).sort()
    run, found, counts = _runs(values)
    inverse = torch.zeros_like(run).scatter(0, order, run).reshape(x.shape)
    return found, inverse if return_inverse else _none(), counts if return_counts else _none()


def _unique_in_a_row(
    x: Any,
    return_inverse: bool = False,  # noqa: FBT001, FBT002
    return_counts: bool = False,  # noqa: FBT001, FBT002
    dim: int | None = None,
) -> Any:
    if not _has_known_size(x) or (dim is not None and x.dim() != 1):
        return NotImplemented
    run, found, counts = _runs(x.reshape(-1))
    return found, run.reshape(x.shape) if return_inverse else _none(), counts if return_counts else _none()


def _has_known_size(x: Any) -> bool:
    return all(isinstance(size, int) and size > 0 for size in x.shape)


def _runs(values: Any) -> tuple[Any, Any, Any]:
    """Returns the number of the run of each value, and the value and the length of each run. NaN equals nothing."""
    is_first = torch.cat([torch.ones(1, dtype=torch.bool), values[1:] != values[:-1]])
    run = is_first.to(torch.int64).cumsum(0) - 1
    lengths = torch.zeros_like(run).scatter_add(0, run, torch.ones_like(run))
    first = _aten.nonzero(is_first).select(1, 0)
    return run, values.index_select(0, first), lengths.index_select(0, run.index_select(0, first))


def _none() -> Any:
    return torch.empty(0, dtype=torch.int64)
