"""Expansion of a model's functions, and of ops that ONNX defines by other ops and IREE's importer does not know.

The importer supports some of the losses, but not those with more than one target per sample, and it computes weighted
means wrongly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

import onnx
from onnx import defs, helper, inliner

from tilewright.errors import ModelError

_MOST_NODES = 131_072
"""Most nodes of a model after expansion. A few tens of functions that each call the next one twice would exceed any
memory. An import takes 0.12 ms of a core of a Xeon for each node (2026-11-27), so at most 16 s."""

_PREVIEW = "ai.onnx.preview"
DEFINED = [
    "AffineGrid",
    "Attention",
    "CausalConvWithState",
    "LinearAttention",
    "NegativeLogLikelihoodLoss",
    "RMSNormalization",
    "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
    "SwiGLU",
    "Swish",
]
"""Ops of ONNX that are replaced by their definitions."""
_PREVIEWS = ["FlexAttention"]
"""Ops of the domain `ai.onnx.preview` that ONNX defines by other ops."""


def is_defined(node: onnx.NodeProto) -> bool:
    """Returns True for an op of a preview that ONNX defines by other ops."""
    return node.domain == _PREVIEW and node.op_type in _PREVIEWS


def inline_functions(model: onnx.ModelProto) -> None:
    """Inlines, in place, the functions that a model brings along; types need not be known."""
    if model.functions:
        _check_size(model)
        model.CopyFrom(inliner.inline_local_functions(model, convert_version=True))
        _name_nodes(model)


_Name = tuple[str, str, str]


def _check_size(model: onnx.ModelProto) -> None:
    """Raises `ModelError` if expansion would produce too many nodes. The inliner itself reports recursive
    functions."""
    calls = {(f.domain, f.name, f.overload): Counter(_called(f.node)) for f in model.functions}
    nodes: dict[_Name, int] = {}
    try:
        for name in TopologicalSorter(
            {caller: set(called) for caller, called in calls.items()}
        ).static_order():
            nodes[name] = sum(count * nodes[called] for called, count in calls.get(name, {}).items()) or 1
    except CycleError:
        return
    if (all_nodes := sum(nodes.get(name, 1) for name in _called(model.graph.node))) > _MOST_NODES:
        largest = max(nodes, key=lambda name: nodes[name])
        raise ModelError(
            f"its functions are {all_nodes:.0g} nodes when spelled out, more than {_MOST_NODES}",
            where=f"function '{largest[0]}.{largest[1]}'",
            hint="call them fewer times",
        )


def _called(nodes: Iterable[onnx.NodeProto]) -> Iterator[_Name]:
    """Yields the name of each node's op, including nodes of nested graphs; an op counts as a function of one node."""
    for node in nodes:
        yield node.domain, node.op_type, node.overload
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _called(graph.node)


def spell_out_functions(model: onnx.ModelProto) -> bool:
    """Expands functions of a model whose types have been inferred, in place; returns True if the model changed."""
    unknown = [
        node
        for node in model.graph.node
        if (node.op_type in DEFINED and node.domain in ("", "ai.onnx")) or is_defined(node)
    ]
    if not unknown:
        return False
    for node in unknown:
        domains = (_PREVIEW,) if node.domain == _PREVIEW else ("", "ai.onnx")
        _give_defaults(node, max(o.version for o in model.opset_import if o.domain in domains))
    # The inliner knows the types of weights only if they are declared.
    declared = {value.name for value in [*model.graph.input, *model.graph.value_info]}
    model.graph.value_info.extend(
        helper.make_tensor_value_info(t.name, t.data_type, t.dims)
        for t in model.graph.initializer
        if t.name not in declared
    )
    # It also needs a type for an optional input that is omitted before one that is present.
    model.graph.value_info.append(helper.make_tensor_value_info("", onnx.TensorProto.UNDEFINED, None))
    chosen = [("", name) for name in DEFINED] + [(_PREVIEW, name) for name in _PREVIEWS]
    model.CopyFrom(inliner.inline_selected_functions(model, chosen, inline_schema_functions=True))
    _name_nodes(model)
    return True


def _give_defaults(node: onnx.NodeProto, opset: int) -> None:
    """Sets attributes that are omitted to their defaults, because the inliner would leave them without a value."""
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in defs.get_schema(
        node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain
    ).attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _name_nodes(model: onnx.ModelProto) -> None:
    """Gives every node a name, which becomes its location; nodes that come from a definition have none."""
    for node in model.graph.node:
        node.name = node.name or next(filter(None, node.output), node.op_type)
