"""Whole numbers of ATen ops on floats as floats.

IREE's importer folds a constant tensor of floats and a whole number with the bits of the number: `torch.zeros(3) == 0`
is false, and `torch.ones(3) - 3` is 1.8e19.
"""

from __future__ import annotations

from typing import Any

import torch

_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_OPS = frozenset(
    (*_COMPARISONS, "add", "addcdiv", "addcmul", "clamp", "div", "full_like", "masked_fill", "mul")
)
_OPS |= {"rsub", "sub", "where"}


def make_scalars_floats(graph: Any) -> None:
    """Changes whole numbers in place to floats, where an op takes them with tensors of floats."""
    for node in graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target._opname in _OPS:
            tensors = [each.meta.get("val") for each in node.all_input_nodes]
            if any(isinstance(one, torch.Tensor) and one.is_floating_point() for one in tensors):
                node.args = tuple(map(_as_float, node.args))
                node.kwargs = {name: _as_number(name, value) for name, value in node.kwargs.items()}


def _as_float(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _as_number(name: str, value: Any) -> Any:
    """Returns what an option becomes; only these are numbers that an op computes with."""
    return _as_float(value) if name in ("alpha", "value") else value
