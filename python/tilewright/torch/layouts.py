"""Graphs between PyTorch's strided tensors and the contiguous tensors that programs take and return.

A dense tensor whose dims are stored in another order is passed as the contiguous tensor that it is in memory, and the
graph permutes it; an output is permuted in the graph and viewed in its own order afterwards. Neither copies.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from tilewright.frontends.pytorch import TorchGraph

_FIXED = "tilewright_fixed"
_CONSTANT = "tilewright_constant"


@dataclass(frozen=True)
class Input:
    """How an input of a program is made of an argument of the graph."""

    argument: int
    order: tuple[int, ...] | None
    """Permutation of the argument that is contiguous; None for the argument as it is."""
    is_fixed: bool = False
    """True for a weight or buffer of a module: see `mark_fixed`."""


@dataclass(frozen=True)
class Output:
    """How a result of the graph is made: of an output of the program, of an argument, or a plain value."""

    result: int | None = None
    argument: int | None = None
    value: Any = None
    order: tuple[int, ...] | None = None
    """Permutation of the program's output."""


@dataclass(frozen=True)
class Layouts:
    """A graph on contiguous tensors, and how it is called in place of the original."""

    graph: TorchGraph
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    is_single: bool
    """True if the original returns one value rather than a tuple."""


def mark_fixed(module: GraphModule, positions: Collection[int]) -> None:
    """Marks placeholders whose memory hardly ever changes from call to call. Parts of the graph inherit the marks."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for position, node in enumerate(placeholders):
        node.meta[_FIXED] = position in positions


def mark_constants(module: GraphModule, constants: Mapping[int, torch.Tensor]) -> None:
    """Makes constants of placeholders, by position, and of no others. Parts of the graph inherit the marks."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for position, node in enumerate(placeholders):
        node.meta.pop(_CONSTANT, None)
        if position in constants:
            node.meta[_CONSTANT] = constants[position]


def contiguous_order(value: torch.Tensor) -> tuple[int, ...] | None:
    """Returns the permutation that makes a dense tensor contiguous, or None if it is contiguous or not dense."""
    if value.is_contiguous():
        return None
    strides = [int(stride) for stride in value.stride()]
    order = tuple(sorted(range(len(strides)), key=lambda dim: (-strides[dim], dim)))
    return order if value.permute(order).is_contiguous() else None


def use_contiguous(module: GraphModule) -> Layouts:
    """Returns the graph on contiguous tensors, without arguments that are constants or not used."""
    graph, constants = Graph(), torch.nn.Module()
    values: dict[Node, Node] = {}
    inputs: list[Input] = []
    arguments: dict[Node, int] = {}
    outputs: list[Output] = []
    computed: dict[Node, int] = {}
    results: list[Node] = []
    is_single = False
    for node in module.graph.nodes:
        if node.op == "placeholder":
            arguments[node] = len(arguments)
            if _CONSTANT in node.meta:
                setattr(constants, node.name, node.meta[_CONSTANT].detach().resolve_neg())
                values[node] = graph.get_attr(node.name)
                values[node].meta = {"val": node.meta["val"]}
            elif node.users and isinstance(node.meta.get("val"), torch.Tensor):
                values[node], order = _add_input(graph, node)
                inputs.append(Input(arguments[node], order, is_fixed=bool(node.meta.get(_FIXED))))
        elif node.op == "output":
            (returned,) = node.args
            is_single = not isinstance(returned, list | tuple)
            for value in (returned,) if is_single else returned:
                outputs.append(_add_output(graph, value, arguments, values, computed, results))
        else:
            values[node] = graph.node_copy(node, lambda operand: values[operand])
            values[node].meta = copy.copy(node.meta)
    graph.output(results)
    graph.eliminate_dead_code()
    return Layouts(
        TorchGraph(GraphModule(constants, graph)), tuple(inputs), tuple(outputs), is_single=is_single
    )


def _add_input(graph: Graph, node: Node) -> tuple[Node, tuple[int, ...] | None]:
    """Adds a placeholder for a contiguous tensor; returns the node in the original order of dims."""
    value = node.meta["val"]
    order = contiguous_order(value)
    added = graph.placeholder(node.name)
    if order is None:
        added.meta = {"val": value}
        return added, None
    added.meta = {"val": value.permute(order)}
    return _permute(graph, added, _inverse(order)), order


def _add_output(
    graph: Graph,
    value: Any,
    arguments: dict[Node, int],
    values: dict[Node, Node],
    computed: dict[Node, int],
    results: list[Node],
) -> Output:
    if not isinstance(value, Node):
        return Output(value=value)
    if value in arguments:
        return Output(argument=arguments[value])
    order = contiguous_order(value.meta["val"])
    if value not in computed:
        computed[value] = len(results)
        results.append(values[value] if order is None else _permute(graph, values[value], order))
    return Output(result=computed[value], order=None if order is None else _inverse(order))


def _permute(graph: Graph, node: Node, order: Sequence[int]) -> Node:
    permuted = graph.call_function(torch.ops.aten.permute.default, (node, list(order)))
    permuted.meta = {"val": node.meta["val"].permute(order)}
    return permuted


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=lambda place: order[place]))
