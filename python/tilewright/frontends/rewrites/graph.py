"""The types, shapes and constants of a graph, by name, and the walk over its nodes that replaces some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import onnx
from onnx import NodeProto

from tilewright.frontends.rewrites.rule import Constants, Makers, Shapes, Types, subgraphs


@dataclass(frozen=True)
class Scope:
    """What is known of the values that the nodes of a graph may read, those of the graphs around it included."""

    shapes: Shapes = field(default_factory=dict)
    types: Types = field(default_factory=dict)
    constants: Constants = field(default_factory=dict)
    makers: Makers = field(default_factory=dict)
    path: tuple[str, ...] = ()
    """Results of the nodes that hold the graph, and which of their graphs it is."""

    def inside(self, graph: onnx.GraphProto, *steps: str) -> Scope:
        """Returns the scope of a graph in this one."""
        return Scope(
            self.shapes | shapes_in(graph),
            self.types | types_in(graph),
            self.constants | constants_in(graph),
            makers_in(graph, self.makers),
            (*self.path, *steps),
        )


Replace = Callable[[NodeProto, Scope], list[NodeProto] | None]
"""Returns the nodes that replace one, or None if it stays."""


def replace_nodes(graph: onnx.GraphProto, replace: Replace) -> bool:
    """Replaces nodes of a graph, in place, those of inner graphs before the node that holds them; returns True if any
    was replaced."""
    return _replace_nodes(graph, replace, Scope().inside(graph))


def _replace_nodes(graph: onnx.GraphProto, replace: Replace, scope: Scope) -> bool:
    nodes: list[NodeProto] = []
    is_changed = False
    for node in graph.node:
        for number, inner in enumerate(subgraphs(node)):
            is_changed |= _replace_nodes(inner, replace, scope.inside(inner, *node.output, str(number)))
        made = replace(node, scope)
        is_changed |= made is not None
        nodes += [node] if made is None else made
    if is_changed:
        del graph.node[:]
        graph.node.extend(nodes)
    return is_changed


def graphs_in(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yields a graph and all graphs in its nodes."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs_in(inner)


def types_in(graph: onnx.GraphProto) -> Types:
    """Returns the element type of every tensor whose type is known."""
    values = [*graph.input, *graph.value_info, *graph.output]
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    return types | {tensor.name: tensor.data_type for tensor in graph.initializer}


def shapes_in(graph: onnx.GraphProto) -> Shapes:
    """Returns the shape of every tensor for which it is known; a dim of -1 has an unknown length."""
    shapes: Shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = list(node.attribute[0].t.dims)
    for value in [*graph.input, *graph.value_info, *graph.output]:
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            shapes[value.name] = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims]
    return shapes


def makers_in(graph: onnx.GraphProto, outer: Makers) -> Makers:
    """Returns the node that computes each value, behind nodes that hand a value on as it is; `outer` are those of the
    graphs around this one."""
    makers = dict(outer)
    for node in graph.node:
        maker = makers.get(node.input[0]) if node.op_type in ("Identity", "Dropout") else node
        for name in filter(None, node.output):
            makers.pop(name, None)
            if maker is not None:
                makers[name] = maker
    return makers


def constants_in(graph: onnx.GraphProto) -> Constants:
    """Returns the constants of a graph by name: initializers and Constants."""
    constants: Constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
    return constants
