"""Compiles a graph of static shapes: the parts that we take become programs, PyTorch runs the rest."""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

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
    return CompiledGraph(_without_frame(split), total - left, tuple(notes), tuple(parts))


def _without_frame(split: GraphModule) -> Callable[..., Any]:
    """Returns what computes a graph: its only part if there is nothing else, which saves calls of modules."""
    given = {node: place for place, node in enumerate(split.graph.find_nodes(op="placeholder"))}
    inside = [node for node in split.graph.nodes if node.op not in ("placeholder", "output")]
    if not inside or inside[0].op != "call_module" or not all(node in given for node in inside[0].args):
        return split
    call, *results = inside
    part = split.get_submodule(str(call.target))
    is_alone = all(node.target is operator.getitem and node.args[0] is call for node in results)
    returned: Any = split.graph.output_node().args[0]
    if not isinstance(part, CompiledPart) or not is_alone or not isinstance(returned, list | tuple):
        return split
    places = [given[node] for node in cast(Any, call.args)]
    if list(returned) == [call]:
        return lambda *arguments: [part.forward(*[arguments[place] for place in places])]
    if not all(node in results for node in returned):
        return split
    order: list[Any] = [node.args[1] for node in returned]

    def run(*arguments: Any) -> list[Any]:
        found = part.forward(*[arguments[place] for place in places])
        return [found[place] for place in order]

    return run
