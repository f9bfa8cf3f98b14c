"""Tensors without elements as constants: IREE's compiler divides by their sizes in several ops and dies."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Graph

_aten = torch.ops.aten


def hold_empties(graph: Graph) -> None:
    """Makes each tensor without elements that is computed a constant. What is computed for them alone is dropped."""
    for node in graph.nodes:
        value: Any = node.meta.get("val")
        if node.op == "call_function" and _is_empty(value):
            node.target = _aten.full.default
            node.args, node.kwargs = (list(value.shape), 0), {"dtype": value.dtype, "pin_memory": False}
    graph.eliminate_dead_code()


def _is_empty(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return False
    return all(isinstance(size, int) for size in value.shape) and math.prod(value.shape) == 0
