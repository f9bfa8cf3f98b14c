"""The nodes of an ATen graph that the compiler takes, and the parts of a graph that are worth a program."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import Node

from tilewright.frontends.pytorch_ops import has_op

# IREE computes with unsigned integers as if they had a sign in several ops, so these are left out.
_DTYPES = frozenset(
    {
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.bool,
    }
)
_aten = torch.ops.aten
_COMPARISONS = frozenset(
    {_aten.eq.Tensor, _aten.ne.Tensor, _aten.ge.Tensor, _aten.le.Tensor, _aten.gt.Tensor, _aten.lt.Tensor}
)
_MOVES = frozenset(
    {
        operator.getitem,
        _aten.view.default,
        _aten._unsafe_view.default,
        _aten.permute.default,
        _aten.transpose.int,
        _aten.t.default,
        _aten.expand.default,
        _aten.squeeze.default,
        _aten.squeeze.dim,
        _aten.squeeze.dims,
        _aten.unsqueeze.default,
        _aten.slice.Tensor,
        _aten.select.int,
        _aten.alias.default,
        _aten.detach.default,
        _aten.clone.default,
        _aten.split.Tensor,
        _aten.split_with_sizes.default,
        _aten.as_strided.default,
        _aten.full.default,
    }
)
"""Ops that PyTorch does for nothing or by a copy."""

_FEW_ELEMENTS = 1024
"""Elements below which a single op is faster in PyTorch than the call of a program."""


def refusal(node: Node) -> str | None:
    """Returns why a node is left to PyTorch, or None if the compiler takes it."""
    if node.op != "call_function":
        return f"{node.op} is not an op"
    if node.target is operator.getitem:
        return refusal(node.args[0]) if isinstance(node.args[0], Node) else "its operand is no tensor"
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return "it is not an op of ATen"
    if torch.Tag.nondeterministic_seeded in target.tags:
        return "it draws random numbers"
    if torch.Tag.data_dependent_output in target.tags:
        return "it returns data as a number"
    if target._schema.is_mutable:
        return "it changes its operand"
    if not has_op(target):
        return "the importer does not know it"
    if target in _COMPARISONS and node.args[0] is node.args[1]:
        return "IREE takes a comparison of a tensor with itself to be known, which NaN is not"
    values = [operand.meta.get("val") for operand in node.all_input_nodes]
    return next(filter(None, map(_refused_value, (*values, node.meta.get("val")))), None)


def _refused_value(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return next(filter(None, map(_refused_value, value)), None)
    if value is None or (isinstance(value, bool | int | float) and not isinstance(value, torch.SymInt)):
        return None
    if not isinstance(value, torch.Tensor):
        return f"a value of type {type(value).__name__} is not supported"
    if value.layout != torch.strided or value.is_quantized or value.dtype not in _DTYPES:
        return f"tensors of {str(value.dtype).removeprefix('torch.')} are not supported"
    if value.device.type != "cpu":
        return f"it is on {value.device}"
    if not all(isinstance(size, int) for size in value.shape):
        return "its shape is not known"
    return "a tensor has no elements" if value.numel() == 0 else None


def graph_refusal(nodes: Iterable[Node]) -> str | None:
    """Returns why PyTorch runs all of a graph, or None."""
    for node in nodes:
        if str(node.target).startswith("aten.as_strided"):
            return "as_strided reads the memory of its operand, whose layout a program does not keep"
    return None


def computes(node: Node) -> bool:
    """True if a node does arithmetic rather than name a part of another tensor."""
    return node.op == "call_function" and node.target not in _MOVES


def is_worth_it(nodes: Iterable[Node]) -> bool:
    """True if a program for these nodes can be faster than PyTorch's kernels, which cost less to call."""
    work = [node for node in nodes if computes(node)]
    elements = max((_elements(node) for node in work), default=0)
    return len(work) > 1 or elements >= _FEW_ELEMENTS


def _elements(node: Node) -> int:
    values = [operand.meta.get("val") for operand in (*node.all_input_nodes, node)]
    return max((value.numel() for value in _tensors(values)), default=0)


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, torch.Tensor):
            yield value
