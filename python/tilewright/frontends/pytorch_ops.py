"""ATen ops as IREE's importer takes them: what is spelled out before the import, and what it has no op for."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from iree.compiler import ir
from iree.compiler.extras import fx_importer
from torch.fx import Graph
from torch.fx.experimental.symbolic_shapes import statically_known_true

from tilewright.errors import ModelError
from tilewright.frontends import (
    pytorch_bags,
    pytorch_copies,
    pytorch_diagonals,
    pytorch_elementwise,
    pytorch_extremes,
    pytorch_gamma,
    pytorch_grids,
    pytorch_groups,
    pytorch_indices,
    pytorch_numbers,
    pytorch_pads,
    pytorch_pools,
    pytorch_powers,
    pytorch_random,
    pytorch_resizes,
    pytorch_running,
    pytorch_scatters,
    pytorch_unique,
)
from tilewright.frontends.pytorch_convolutions import convolution
from tilewright.frontends.pytorch_fast_paths import attention, encoder_layer, flash_attention
from tilewright.frontends.pytorch_histogram import histogram

_aten = torch.ops.aten

_KEPT = (
    # Spelled out, a linear layer of a transposed tensor becomes a batch of matmuls with equal weights.
    _aten.linear.default,
    # PyTorch spells these out by squeeze.dims, which IREE does not have.
    _aten.squeeze.default,
    _aten.squeeze.dim,
)
_SPELLED_OUT = (
    _aten._native_batch_norm_legit.default,
    _aten._native_batch_norm_legit.no_stats,
    _aten._native_batch_norm_legit_functional.default,
    _aten._native_batch_norm_legit_no_training.default,
    _aten.addmm.dtype,
    _aten.addmv.default,
    _aten._addmm_activation.default,
    _aten.bitwise_and.Scalar_Tensor,
    _aten.bitwise_left_shift.Scalar_Tensor,
    _aten.bitwise_or.Scalar_Tensor,
    _aten.bitwise_right_shift.Scalar_Tensor,
    _aten.bitwise_xor.Scalar_Tensor,
    _aten.dist.default,
    _aten.grid_sampler_2d.default,
    _aten.narrow_copy.default,
    _aten.remainder.Scalar_Tensor,
    _aten.upsample_bicubic2d.default,
    _aten.upsample_bilinear2d.vec,
    _aten.upsample_trilinear3d.default,
)
"""Ops that IREE does not have, for which PyTorch has a decomposition."""

_NAMESPACES = ("aten", "prim", "prims", "torch_nn")
"""PyTorch's own."""

_PYTORCH_DOES = "torch.compile(module, backend='tilewright') leaves this op to PyTorch"
_REAL_MAY_DO = (
    "make complex inputs and outputs real by torch.view_as_real, or use "
    "torch.compile(module, backend='tilewright'), which leaves this op to PyTorch"
)

_OTHERWISE_IMPORTED = frozenset([*fx_importer.SYMBOLIC_OP_TO_TORCH_OP, *fx_importer.NODE_CANONICALIZE])
"""Ops for which the importer takes another one."""


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Returns the ops to spell out, with functions that do so by other ops."""
    table = dict(torch._decomp.core_aten_decompositions())
    for op in _KEPT:
        table.pop(op, None)
    return {
        **table,
        **torch._decomp.get_decompositions(_SPELLED_OUT),
        **pytorch_bags.decompositions(),
        **pytorch_copies.decompositions(),
        **pytorch_diagonals.decompositions(),
        **pytorch_elementwise.decompositions(),
        **pytorch_extremes.decompositions(),
        **pytorch_gamma.decompositions(),
        **pytorch_grids.decompositions(),
        **pytorch_groups.decompositions(),
        **pytorch_indices.decompositions(),
        **pytorch_numbers.decompositions(),
        **pytorch_pads.decompositions(),
        **pytorch_pools.decompositions(),
        **pytorch_powers.decompositions(),
        **pytorch_random.decompositions(),
        **pytorch_resizes.decompositions(),
        **pytorch_running.decompositions(),
        **pytorch_scatters.decompositions(),
        **pytorch_unique.decompositions(),
        _aten.squeeze.dims: _squeeze_dims,
        _aten.index_put.default: _index_put,
        _aten._unsafe_index_put.default: _unsafe_index_put,
        _aten.convolution.default: convolution,
        _aten.histc.default: histogram,
        _aten._cdist_forward.default: _distances,
        _aten._pdist_forward.default: _distances_of_pairs,
        _aten.native_group_norm.default: _group_norm,
        _aten.empty_permuted.default: _empty_permuted,
        _aten.empty_strided.default: lambda shape, stride, *, dtype=None, **_: torch.empty(
            shape, dtype=dtype
        ),
        _aten.eye.default: _eye,
        _aten.eye.m: _eye,
        _aten.as_strided.default: _as_strided,
        _aten.masked_scatter.default: _masked_scatter,
        _aten.put.default: _put,
        _aten.std.correction: _spread,
        _aten.std_mean.correction: _deviation_and_mean,
        _aten.var.correction: _spread,
        _aten.var_mean.correction: _variance_and_mean,
        _aten.sort.default: _sort,
        _aten.sort.stable: _stable_sort,
        _aten.topk.default: _top,
        _aten.split_with_sizes.default: _split,
        _aten.roll.default: _roll,
        _aten._native_multi_head_attention.default: attention,
        _aten._scaled_dot_product_flash_attention_for_cpu.default: flash_attention,
        _aten._transformer_encoder_layer_fwd.default: encoder_layer,
    }


def _squeeze_dims(x: Any, dims: Any) -> Any:
    for dim in sorted((dim % max(x.dim(), 1) for dim in dims), reverse=True):
        x = _aten.squeeze.dim(x, dim)
    return x


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:  # noqa: FBT001, FBT002
    """Counts negative indices from the end, which IREE does not, and moves those outside of a dim to its nearest end,
    because IREE writes there."""
    if any(index is not None and 0 in index.shape for index in indices):
        return x.clone()  # IREE's compiler divides by the number of places
    if any(index is not None and index.dtype == torch.bool for index in indices):
        return _put_where(x, indices, values, accumulate=accumulate)
    counted = [None if index is None else _inside(index, x.shape[axis]) for axis, index in enumerate(indices)]
    return _unsafe_index_put(x, counted, values, accumulate, or_else=_aten._unsafe_index_put)


def _inside(index: Any, size: Any) -> Any:
    counted = torch.where(index < 0, index + size, index)
    return counted.clamp(0, size - 1) if isinstance(size, int) and size > 0 else counted


def _put_where(x: Any, indices: Any, values: Any, *, accumulate: bool) -> Any:
    """Puts values at the places of a mask. IREE counts the places, and its program crashes if there are none.

    IREE refuses values that differ from place to place of a mask behind other dims.
    """
    used = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if len(used) != 1:
        return NotImplemented
    ((axis, mask),) = used
    behind = x.dim() - axis - mask.dim()
    own = values.shape[: max(0, values.dim() - behind)]
    if not all(statically_known_true(size == 1) for size in own):
        return (
            _put_each(x, mask, values, accumulate=accumulate)
            if axis == 0 and len(own) == 1
            else NotImplemented
        )
    one = values.reshape(values.shape[max(0, values.dim() - behind) :])
    mask = mask.reshape([*mask.shape, *[1] * behind])
    return torch.where(mask, x + one if accumulate else one, x)


def _put_each(x: Any, mask: Any, values: Any, *, accumulate: bool) -> Any:
    """Reads for each place of a mask over the first dims the value of its number. There may be none to read."""
    place = (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(min=0)
    none = torch.zeros([1, *values.shape[1:]], dtype=values.dtype)
    found = torch.cat([values, none]).index_select(0, place).reshape([*mask.shape, *values.shape[1:]])
    mask = mask.reshape([*mask.shape, *[1] * (x.dim() - mask.dim())])
    return torch.where(mask, x + found if accumulate else found, x)


def _unsafe_index_put(
    x: Any,
    indices: Any,
    values: Any,
    accumulate: bool = False,  # noqa: FBT001, FBT002
    *,
    or_else: Any = lambda *_: NotImplemented,
) -> Any:
    """Puts the indexed dims first, which IREE needs; `or_else` is for ops where they are."""
    indexed = [axis for axis, index in enumerate(indices) if index is not None]
    used: list[Any] = [indices[axis] for axis in indexed]
    if indexed == list(range(len(indexed))):
        return or_else(x, used, values, accumulate)
    if len(used) == 1 and all(isinstance(size, int) for size in (*x.shape, *used[0].shape)):
        return _put_rows(x, indexed[0], used[0], values, accumulate=accumulate)
    points = torch.broadcast_shapes(*(index.shape for index in used))  # type: ignore[no-untyped-call]
    before = [axis for axis in range(indexed[0]) if axis not in indexed]
    after = [axis for axis in range(indexed[0], x.dim()) if axis not in indexed]
    if indexed[-1] - indexed[0] + 1 != len(indexed):  # the dims of the points come first
        before, after = [], [*before, *after]
    order = [*indexed, *before, *after]
    shape = [*(x.shape[axis] for axis in before), *points, *(x.shape[axis] for axis in after)]
    first = list(range(len(before), len(before) + len(points)))
    moved = torch.movedim(values.expand(shape), first, list(range(len(points))))
    put = _aten._unsafe_index_put(x.permute(order), used, moved, accumulate)
    return put.permute([order.index(axis) for axis in range(x.dim())])


def _put_rows(x: Any, axis: int, index: Any, values: Any, *, accumulate: bool) -> Any:
    """Puts rows of a matrix of all that lies behind an axis, which can be done in place, as in a cache of keys.

    An index outside is moved to the nearest one inside, so that the next row of another dim is never written.
    """
    if 0 in (x.numel(), index.numel()):
        return x
    before, size, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    lines = torch.arange(math.prod(before)).unsqueeze(-1) * size
    rows = (lines + index.reshape(-1).clamp(0, size - 1)).reshape(-1)
    new = values.expand([*before, *index.shape, *behind]).reshape(rows.shape[0], -1)
    put = _aten._unsafe_index_put(x.reshape(math.prod(before) * size, -1), [rows], new, accumulate)
    return put.reshape(x.shape)


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """IREE's importer takes only a mask of the shape of the tensor."""
    if x.shape == mask.shape:
        return NotImplemented
    return _aten.masked_scatter(*torch.broadcast_tensors(x, mask), source)  # type: ignore[no-untyped-call]


def _spread(x: Any, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Any:
    """The spread of no elements is NaN, where IREE divides by the negative number of degrees of freedom."""
    is_empty = any(statically_known_true(size == 0) for size in x.shape)
    return x.sum(dim, keepdim=keepdim) + math.nan if is_empty else NotImplemented


def _variance_and_mean(x: Any, dim: Any = None, **options: Any) -> Any:
    nothing = _spread(x, dim, keepdim=options.get("keepdim", False))
    return nothing if nothing is NotImplemented else (nothing, nothing)


def _deviation_and_mean(x: Any, dim: Any = None, **options: Any) -> Any:
    variance, mean = torch.var_mean(x, dim, **options)
    return variance.sqrt(), mean


def _sort(x: Any, dim: int = -1, descending: bool = False) -> Any:  # noqa: FBT001, FBT002
    """Sorts bools and bytes as wider numbers, because IREE's importer takes them for signed ones."""
    if x.dtype not in (torch.bool, torch.uint8):
        return NotImplemented
    values, places = _aten.sort.default(x.to(torch.int32), dim, descending)
    return values.to(x.dtype), places


def _stable_sort(x: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """All sorts of ours are stable."""
    return _aten.sort.default(x, dim, descending)


def _top(x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: FBT001, FBT002
    """Sorts always, because IREE's importer has no other form, and any order is right where none is asked for."""
    if x.dtype == torch.uint8:
        values, places = torch.topk(x.to(torch.int32), k, dim, largest)
        return values.to(x.dtype), places
    return NotImplemented if sorted else _aten.topk.default(x, k, dim, largest)


def _distances(x: Any, y: Any, p: float, mode: int | None = None) -> Any:
    """Returns the distances of the rows of x from those of y in the p-norm."""
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)


def _distances_of_pairs(x: Any, p: float = 2.0) -> Any:
    """Returns the distance of each row from those behind it."""
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1)
    return torch.linalg.vector_norm(x.index_select(0, first) - x.index_select(0, second), p, -1)


def _group_norm(
    x: Any, weight: Any, bias: Any, batch: int, channels: int, points: int, groups: int, eps: float
) -> tuple[Any, Any, Any]:
    """Normalises groups in f32, or f64 if x is, as PyTorch does; IREE's importer takes f64 for all.

    Every op is on tensors of [batch, group, channel of the group, point], so that a tile can be a group."""
    kept = torch.promote_types(x.dtype, torch.float32)
    shape = [1, groups, channels // groups, 1]
    grouped = x.reshape(batch, groups, channels // groups, points).to(kept)
    mean = grouped.mean((2, 3), keepdim=True)
    centred = grouped - mean
    scale = torch.rsqrt((centred * centred).mean((2, 3), keepdim=True) + eps)
    y = centred * scale
    if weight is not None:
        y = y * weight.reshape(shape).to(kept)
    if bias is not None:
        y = y + bias.reshape(shape).to(kept)
    statistics = (one.reshape(batch, groups).to(x.dtype) for one in (mean, scale))
    return y.to(x.dtype).reshape(x.shape), *statistics


def _empty_permuted(shape: Any, order: Any, *, dtype: Any = None, **_: Any) -> Any:
    made = torch.empty([shape[axis] for axis in order], dtype=dtype)
    return made.permute([order.index(axis) for axis in range(len(order))])


def _eye(rows: int, columns: int | None = None, *, dtype: Any = None, **_: Any) -> Any:
    """PyTorch compares numbers of eight bits, at which IREE's compiler crashes."""
    places = torch.arange(rows).unsqueeze(-1) == torch.arange(rows if columns is None else columns)
    return places.to(torch.get_default_dtype() if dtype is None else dtype)


def _as_strided(x: Any, size: Any, stride: Any, offset: int | None = None) -> Any:
    """A pool to one element says so which order of dims the memory has, which means nothing without strides; IREE's
    importer does not take it with open sizes."""
    held = [*x.shape, *x.stride(), x.storage_offset()]
    steps = [old if n == 1 else new for n, old, new in zip(size, x.stride(), stride, strict=False)]
    wanted = [*size, *steps, x.storage_offset() if offset is None else offset]
    is_same = len(held) == len(wanted) and all(
        statically_known_true(one == other) for one, other in zip(held, wanted, strict=True)
    )
    return x.view(size) if is_same else NotImplemented


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:  # noqa: FBT001, FBT002
    put = _aten.index_put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate)
    return put.reshape(x.shape)


def _split(x: Any, sizes: Any, dim: int = 0) -> Any:
    """IREE splits into parts of fixed sizes only."""
    if all(isinstance(size, int) for size in sizes):
        return NotImplemented
    ends = list(itertools.accumulate(sizes))
    return [_aten.slice.Tensor(x, dim, end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _roll(x: Any, shifts: Any, dims: Any = ()) -> Any:
    """Rolls by slices of known sizes. IREE's importer makes such of unknown size, of which some do not compile and
    others are wrong; without dims, where the flattened tensor is rolled, it takes none."""
    if not dims:
        return _aten.roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    if x.dim() == 0 or not all(isinstance(size, int) for size in (*x.shape, *shifts)):
        return NotImplemented
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        first = -shift % max(size, 1)
        if first:
            x = torch.cat([x.narrow(dim, first, size - first), x.narrow(dim, 0, first)], dim)
    return x


@functools.cache
def has_op(overload: Any) -> bool:
    """True if IREE's torch dialect has an op for an overload. It may still refuse some of its forms."""
    name = overload._schema.name.replace("::", ".")
    suffix = f".{overload._schema.overload_name}" if overload._schema.overload_name else ""
    return bool(_context().is_registered_operation(f"torch.{name}{suffix}"))


def drop_type_checks(graph: Graph) -> None:
    """Drops the checks of types that `Tensor.to` leaves, with what is computed for them alone. They hold for what was
    exported."""
    for node in list(graph.nodes):
        if node.target is _aten._assert_tensor_metadata.default:
            graph.erase_node(node)
    graph.eliminate_dead_code()


def check_ops(graph: Any, *, name: str) -> None:
    """Raises `ModelError` for an op of another library than PyTorch, which a program cannot call, and for one of
    PyTorch that neither we nor IREE's importer have."""
    for node in graph.nodes:
        op = node.target
        if not isinstance(op, torch._ops.OpOverload) or has_op(op) or op in _OTHERWISE_IMPORTED:
            continue
        who = "IREE's importer lacks" if op.namespace in _NAMESPACES else "only its library computes"
        raise ModelError(
            f"it calls '{op._schema.name}', which {who}",
            where=f"{name}, '{node.name}'",
            hint=_REAL_MAY_DO if _is_complex(node) else _PYTORCH_DOES,
        )


def _is_complex(node: Any) -> bool:
    values = [one.meta.get("val") for one in (node, *node.all_input_nodes)]
    return any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)


@functools.cache
def _context() -> Any:
    context = ir.Context()
    _ = context.dialects["torch"]
    return context
