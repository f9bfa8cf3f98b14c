"""Compiles a graph of static shapes: the parts that we take become programs, PyTorch runs the rest."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from tilewright.errors import CompileError, TilewrightError
from tilewright.torch.options import BackendOptions
from tilewright.torch.part import CompiledPart, compile_part, failing_nodes
from tilewright.torch.support import computes, graph_refusal, is_worth_it, refusal
from tilewright.worker.process import keep_compilers

_MOST_ATTEMPTS = 12
"""Attempts to compile a graph, each without an op that the last one failed on; then PyTorch runs what still fails."""


@dataclass(frozen=True)
class CompiledGraph:
    """A graph that can be run, and who runs what."""

    run: Callable[..., Any]
    taken: int
    """Number of ops in our programs; ops that only name a part of a tensor do not count."""
    left: tuple[str, ...]
    """Notes on the ops that PyTorch runs, with the reason."""
    parts: tuple[CompiledPart, ...]


def compile_graph(module: GraphModule, options: BackendOptions) -> CompiledGraph:
    """Compiles what can be compiled of a graph. It raises no error of the compiler: what fails is left to PyTorch."""
    reason = graph_refusal(module.graph.nodes)
    if reason is not None:
        return CompiledGraph(module, 0, (f"the whole graph: {reason}",), ())
    support = _Support()
    with keep_compilers():
        for _ in range(_MOST_ATTEMPTS):
            split = _split(module, support)
            failed = _compile_parts(split, options)
            culprits = [node for part, error in failed.items() for node in _culprits(split, part, error)]
            if not culprits:
                culprits = [node for part in failed for node in failing_nodes(getattr(split, part))]
            if not culprits:
                break
            for node, error in culprits:
                support.deny(node, error)
    parts = [part for part in split.children() if isinstance(part, CompiledPart)]
    return _summarise(module, split, support, failed, parts)


class _Support(OperatorSupportBase):
    """Nodes that the compiler takes, less the ops that it failed on."""

    def __init__(self) -> None:
        self._denied: dict[Any, str] = {}
        """Reasons by op."""

    def deny(self, node: Node, reason: str) -> None:
        self._denied[_op(node)] = reason

    def reason(self, node: Node) -> str | None:
        return self._denied.get(_op(node)) or refusal(node)

    def is_node_supported(self, submodules: Any, node: Node) -> bool:
        return self.reason(node) is None


def _op(node: Node) -> Any:
    """Returns the op of a node, or of the node that a `getitem` takes a result of."""
    while node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem":
        operand = node.args[0]
        if not isinstance(operand, Node):
            break
        node = operand
    return node.target


def _split(module: GraphModule, support: _Support) -> GraphModule:
    """Returns a copy of the graph with a submodule in place of each part that is worth compiling."""
    split = GraphModule(module, copy.deepcopy(module.graph))
    partitioner = CapabilityBasedPartitioner(split, support, allows_single_node_partition=True)
    chosen = [part for part in partitioner.propose_partitions() if is_worth_it(part.nodes)]
    return partitioner.fuse_partitions(chosen, prefix="part_") if chosen else split


def _compile_parts(split: GraphModule, options: BackendOptions) -> dict[str, TilewrightError]:
    """Replaces the parts by programs; returns the errors of those that fail, by the part's name."""
    failed: dict[str, TilewrightError] = {}
    for name, part in list(split.named_children()):
        if not name.startswith("part_") or not isinstance(part, GraphModule):
            continue
        try:
            setattr(split, name, compile_part(part, options))
        except TilewrightError as error:
            failed[name] = error
            if _culprits(split, name, error):
                break  # the graph is split again without these ops
    return failed


def _culprits(split: GraphModule, name: str, error: TilewrightError) -> list[tuple[Node, str]]:
    """Returns the nodes of a part that an error names by their location or their op, with the error's message."""
    part = getattr(split, name)
    if not isinstance(error, CompileError) or not isinstance(part, GraphModule):
        return []
    named = re.findall(r'"([^"]+)"', error.location or "")
    places = {place.rpartition("/")[2] for place in named}
    found = [
        node
        for node in part.graph.nodes
        if node.op == "call_function"
        and (node.name in places or f'"torch.{str(node.target).removesuffix(".default")}"' in error.details)
    ]
    return [(node, error.message) for node in found]


def _summarise(
    module: GraphModule,
    split: GraphModule,
    support: _Support,
    failed: dict[str, TilewrightError],
    parts: Sequence[CompiledPart],
) -> CompiledGraph:
    total = sum(computes(node) for node in module.graph.nodes)
    outside = [node for node in split.graph.nodes if computes(node)]
    notes = [f"{node.name}: {support.reason(node) or 'too little work for a program'}" for node in outside]
    left = len(outside)
    for name, error in failed.items():
        part = getattr(split, name)
        if isinstance(part, GraphModule):
            inside = [node for node in part.graph.nodes if computes(node)]
            notes.append(f"{len(inside)} ops from {inside[0].name if inside else name} on: {error.message}")
            left += len(inside)
    return CompiledGraph(split, total - left, tuple(notes), tuple(parts))
