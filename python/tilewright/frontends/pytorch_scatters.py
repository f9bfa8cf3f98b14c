"""ATen's scatters, searches, medians and stable sorts by other ops: IREE's compiler crashes at most scatters, and its
importer lacks the others.

Each element of a scatter's result is compared with the index of each update in its line along the dim, as those of ONNX
are (`frontends.rewrites.ops.scatter`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tilewright.frontends.rewrites.ops.scatter import MOST_PAIRS

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten.scatter.src: _scatter,
        _aten.scatter.value: _scatter_value,
        _aten.scatter.value_reduce: _scatter_number,
        _aten.scatter_add.default: _scatter_add,
        _aten.scatter_reduce.two: _scatter_reduce,
        _aten.index_reduce.default: _index_reduce,
        _aten.sort.stable: _sort,
        _aten.kthvalue.default: _kth_value,
        _aten.median.dim: functools.partial(_at_place, _middle),
        _aten.median.default: lambda x: _at_place(_middle, x.reshape(-1))[0],
        _aten.nanmedian.dim: functools.partial(_at_place, _middle_of_numbers),
        _aten.nanmedian.default: lambda x: _at_place(_middle_of_numbers, x.reshape(-1))[0],
        _aten.searchsorted.Tensor: _searchsorted,
        _aten.searchsorted.Scalar: _searchsorted_number,
    }


def _in_updated_lines(scatter: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a scatter leave lines without updates as they are. The dim that it gets is not negative."""

    @functools.wraps(scatter)
    def run(x: Any, dim: int, index: Any, *arguments: Any, **options: Any) -> Any:
        if index.numel() == 0:
            return x.clone()
        if x.dim() == 0:
            one_long = [one.reshape(1) if isinstance(one, torch.Tensor) else one for one in arguments]
            return run(x.reshape(1), 0, index.reshape(1), *one_long, **options).reshape([])
        dim %= x.dim()
        sizes = [x.shape[axis] if axis == dim else size for axis, size in enumerate(index.shape)]
        result = scatter(_corner(x, sizes), dim, index, *arguments, **options)
        if result is NotImplemented:
            return result
        for axis in reversed(range(x.dim())):
            if sizes[axis] < x.shape[axis]:
                behind = _corner(x, [*sizes[:axis], *x.shape[axis:]]).narrow(
                    axis, sizes[axis], x.shape[axis] - sizes[axis]
                )
                result = torch.cat([result, behind], axis)
        return result.contiguous() if _is_in_order(x) else result  # or PyTorch refuses views of it

    return run


def _is_in_order(x: Any) -> bool:
    """Returns whether a copy of a tensor is contiguous, as that of a part of a contiguous one is."""
    return x.is_contiguous() or all(
        isinstance(one, int) and isinstance(other, int) and one >= other
        for one, other in itertools.pairwise(x.stride())
    )


def _corner(x: Any, sizes: Sequence[int]) -> Any:
    return x[tuple(slice(0, size) for size in sizes)]


def _hits(x: Any, dim: int, index: Any) -> Any | None:
    """Returns whether an update hits an element, [..., size of the dim, updates of the line], with the dim last; or
    None if that is too much."""
    if x.numel() * index.shape[dim] > MOST_PAIRS:
        return None
    places = torch.arange(x.shape[dim], device=index.device)
    return index.movedim(dim, -1).unsqueeze(-2) == places.unsqueeze(-1)


def _updates(source: Any, dim: int, index: Any) -> Any:
    """Returns the elements of the source that are used, [..., 1, updates of the line]."""
    return _corner(source, index.shape).movedim(dim, -1).unsqueeze(-2)


def _put(x: Any, dim: int, index: Any, source: Any, *, accumulate: bool) -> Any:
    """Scatters element by element."""
    coordinates = []
    for axis, size in enumerate(index.shape):
        shape = [size if other == axis else 1 for other in range(index.dim())]
        own = torch.arange(size, device=index.device).reshape(shape).expand(index.shape)
        coordinates.append(index if axis == dim else own)
    return _aten._unsafe_index_put(x, coordinates, _corner(source, index.shape), accumulate)


@_in_updated_lines
def _scatter(x: Any, dim: int, index: Any, source: Any) -> Any:
    hits = _hits(x, dim, index)
    if hits is None:
        return _put(x, dim, index, source, accumulate=False)
    # The last of several updates of an element stays, which PyTorch leaves open.
    numbers = torch.arange(index.shape[dim], device=index.device)
    last = torch.where(hits, numbers, -1).amax(-1).movedim(-1, dim)
    taken = torch.gather(source, dim, last.clamp(min=0))
    return torch.where(last >= 0, taken, x)


@_in_updated_lines
def _scatter_value(x: Any, dim: int, index: Any, value: Any) -> Any:
    hits = _hits(x, dim, index)
    if hits is None:
        return _put(x, dim, index, torch.full(index.shape, value, dtype=x.dtype), accumulate=False)
    return torch.where(hits.any(-1).movedim(-1, dim), value, x)


@_in_updated_lines
def _scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    hits = _hits(x, dim, index)
    if hits is None:
        return _put(x, dim, index, source, accumulate=True)
    total = torch.where(hits, _updates(source, dim, index), 0).sum(-1, dtype=x.dtype)
    return x + total.movedim(-1, dim)


@_in_updated_lines
def _scatter_reduce(
    x: Any,
    dim: int,
    index: Any,
    source: Any,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    hits = _hits(x, dim, index)
    if hits is None:
        return NotImplemented
    updates, is_hit = _updates(source, dim, index), hits.any(-1).movedim(-1, dim)
    if reduce == "mean":
        count = hits.sum(-1).movedim(-1, dim) + (1 if include_self else 0)
        total = torch.where(hits, updates, 0).sum(-1, dtype=x.dtype).movedim(-1, dim)
        total = total + x if include_self else total
        rounding = None if x.is_floating_point() else "floor"
        return torch.where(
            is_hit, torch.div(total, count.clamp(min=1), rounding_mode=rounding).to(x.dtype), x
        )
    total, combined = _reduced(reduce, x, hits, updates, dim)
    return combined if include_self else torch.where(is_hit, total, x)


def _scatter_number(x: Any, dim: int, index: Any, value: Any, *, reduce: str) -> Any:
    """PyTorch calls the same reductions by other names here."""
    source = torch.full(index.shape, value, dtype=x.dtype)
    return _aten.scatter_reduce.two(x, dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])


def _index_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    if x.dim() > 0:
        shape = [-1 if axis == dim % x.dim() else 1 for axis in range(x.dim())]
        index = index.reshape(shape).expand(source.shape)
    return _scatter_reduce(x, dim, index, source, reduce, include_self=include_self)


def _reduced(reduce: str, x: Any, hits: Any, updates: Any, dim: int) -> tuple[Any, Any]:
    """Returns the updates of each element, reduced, and that combined with the element."""
    if reduce == "sum":
        total = torch.where(hits, updates, 0).sum(-1, dtype=x.dtype).movedim(-1, dim)
        return total, x + total
    if reduce == "prod":
        total = torch.where(hits, updates, 1).prod(-1, dtype=x.dtype).movedim(-1, dim)
        return total, x * total
    bounds = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    edge = bounds.min if reduce == "amax" else bounds.max
    nothing = float("-inf" if reduce == "amax" else "inf") if x.is_floating_point() else edge
    chosen = torch.where(hits, updates, nothing)
    total = (chosen.amax(-1) if reduce == "amax" else chosen.amin(-1)).movedim(-1, dim)
    return total, torch.maximum(x, total) if reduce == "amax" else torch.minimum(x, total)


def _sort(x: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """Every sort of ours and of IREE keeps the order of equal elements."""
    return _aten.sort.default(x, dim, descending)


def _kth_value(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:  # noqa: FBT001, FBT002
    return _at_place(lambda x, _: torch.full([1] * x.dim(), k - 1, dtype=torch.int64), x, dim, keepdim)


def _middle(x: Any, dim: int) -> Any:
    """The lower of the middle elements, or NaN, which is sorted last, if there is one."""
    length = x.shape[dim]
    place = torch.full([1] * x.dim(), (length - 1) // 2, dtype=torch.int64)
    if not x.is_floating_point():
        return place
    return torch.where(x.isnan().any(dim, keepdim=True), length - 1, place)


def _middle_of_numbers(x: Any, dim: int) -> Any:
    """The lower of the middle elements in front of NaN, which is sorted last."""
    if not x.is_floating_point():
        return _middle(x, dim)
    numbers = torch.logical_not(x.isnan()).sum(dim, keepdim=True)
    return ((numbers - 1).clamp(min=0) / 2).to(torch.int64)


def _at_place(place_of: Any, x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:  # noqa: FBT001, FBT002
    """Returns the elements at a place of sorted rows, which `place_of` takes from the tensor and the dim, and their
    indices."""
    if x.dim() == 0:
        return x.clone(), torch.zeros([], dtype=torch.int64)
    shape = list(x.shape)
    shape[dim] = 1
    place = place_of(x, dim).expand(shape)
    found = [torch.gather(rows, dim, place) for rows in _aten.sort.default(x, dim)]
    first, second = found if keepdim else [one.squeeze(dim) for one in found]
    return first, second


def _searchsorted(
    rows: Any,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Counts the elements of a row in front of a value. All are in front of NaN, with which no comparison holds."""
    if sorter is not None:
        rows = torch.gather(rows, -1, sorter)
    if values.dim() == 0:
        values = values.reshape(1)
        return _searchsorted(rows, values, out_int32=out_int32, right=right, side=side).reshape([])
    is_right = right if side is None else side == "right"
    row, value = rows.unsqueeze(-2), values.unsqueeze(-1)
    in_front = torch.logical_not(row > value if is_right else row >= value)
    return in_front.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _searchsorted_number(rows: Any, value: Any, **options: Any) -> Any:
    # A fraction stays one among whole numbers.
    kind = torch.result_type(rows, value)
    return _searchsorted(rows, torch.full([], value, dtype=kind), **options)
