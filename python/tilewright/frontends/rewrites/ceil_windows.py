"""Shapes of pools with `ceil_mode`, for which ONNX's inference also counts windows that begin in the padding behind the
image. ONNX leaves these out."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import ModelProto, ValueInfoProto

from tilewright.frontends.rewrites.graph import shapes_in
from tilewright.frontends.rewrites.rule import Operation
from tilewright.frontends.rewrites.windows import windows_of

_POOLS = frozenset(("AveragePool", "MaxPool", "LpPool"))


class CeilWindows:
    """The shapes that a model declares itself, and those of its pools."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._declared = [_copied(value) for value in model.graph.value_info]
        self._outputs = [_copied(value) for value in model.graph.output]

    def declare(self) -> bool:
        """Declares, in place of all inferred types, the right results of pools with too many windows, except those that
        the model declares itself; returns True if there are any, so that types must be inferred again."""
        graph = self._model.graph
        known = {value.name for value in (*self._declared, *self._outputs) if _has_lengths(value)}
        right = {value.name: value for value in _corrected(graph) if value.name not in known}
        if not right:
            return False
        outputs = {value.name for value in self._outputs}
        self._declared += [value for name, value in right.items() if name not in outputs]
        self._outputs = [right.get(value.name, value) for value in self._outputs]
        for field, values in ((graph.value_info, self._declared), (graph.output, self._outputs)):
            del field[:]
            field.extend(values)
        return True


def _has_lengths(value: ValueInfoProto) -> bool:
    return any(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim[2:])


def _copied(value: ValueInfoProto) -> ValueInfoProto:
    copy = ValueInfoProto()
    copy.CopyFrom(value)
    return copy


def _corrected(graph: onnx.GraphProto) -> Iterator[ValueInfoProto]:
    shapes = shapes_in(graph)
    values = {value.name: value for value in (*graph.value_info, *graph.output)}
    for node in graph.node:
        image = shapes.get(node.input[0], [-1]) if node.op_type in _POOLS else [-1]
        if -1 in image[2:] or len(image) <= 2:
            continue
        counts = windows_of(Operation(node, shapes=shapes, types={}, constants={}, opset=0)).counts
        for name in filter(None, node.output):
            known = shapes.get(name, [])[2:]
            if any(length > count for length, count in zip(known, counts, strict=False)):
                value = _copied(values[name])
                for dim, count in zip(value.type.tensor_type.shape.dim[2:], counts, strict=True):
                    dim.dim_value = count
                yield value
