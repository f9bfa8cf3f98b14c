"""Shapes of pools with `ceil_mode`, for which ONNX's inference also counts windows that begin in the padding behind the
image. ONNX leaves these out."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto

from tilewright.frontends.rewrites.graph import shapes_in
from tilewright.frontends.rewrites.rule import Operation, Shapes, subgraphs
from tilewright.frontends.rewrites.windows import windows_of

_POOLS = frozenset(("AveragePool", "MaxPool", "LpPool"))


class CeilWindows:
    """A graph before types are inferred, with the shapes that it declares itself, and those of its pools."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._graph = GraphProto()
        self._graph.CopyFrom(model.graph)

    def declare(self) -> bool:
        """Declares, in place of all inferred types, the right results of pools with too many windows, except those that
        the model declares itself; returns True if there are any, so that types must be inferred again."""
        found = False
        inferred, declared = _graphs(self._model.graph, {}), _graphs(self._graph, {})
        for (graph, shapes), (bare, _) in zip(inferred, declared, strict=True):
            for value in _corrected(graph, shapes):
                found |= _declare(bare, value)
        if found:
            self._model.graph.CopyFrom(self._graph)
        return found


def _graphs(graph: GraphProto, outer: Shapes) -> Iterator[tuple[GraphProto, Shapes]]:
    """Yields a graph and all graphs in its nodes, with the shapes that are known in each; `outer` are those around."""
    shapes = outer | shapes_in(graph)
    yield graph, shapes
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner, shapes)


def _declare(graph: GraphProto, value: ValueInfoProto) -> bool:
    """Declares a value of a graph; returns False if the graph declares its lengths itself."""
    for own in (*graph.value_info, *graph.output):
        if own.name == value.name:
            if any(dim.HasField("dim_value") for dim in own.type.tensor_type.shape.dim[2:]):
                return False
            own.CopyFrom(value)
            return True
    graph.value_info.append(value)
    return True


def _corrected(graph: onnx.GraphProto, shapes: Shapes) -> Iterator[ValueInfoProto]:
    values = {value.name: value for value in (*graph.value_info, *graph.output)}
    for node in graph.node:
        image = shapes.get(node.input[0], [-1]) if node.op_type in _POOLS else [-1]
        if -1 in image[2:] or len(image) <= 2:
            continue
        counts = windows_of(Operation(node, shapes=shapes, types={}, constants={}, opset=0)).counts
        for name in filter(None, node.output):
            known = shapes.get(name, [])[2:]
            if any(length > count for length, count in zip(known, counts, strict=False)):
                value = ValueInfoProto()
                value.CopyFrom(values[name])
                for dim, count in zip(value.type.tensor_type.shape.dim[2:], counts, strict=True):
                    dim.dim_value = count
                yield value
