"""The types, shapes and constants of a graph, by name."""

from __future__ import annotations

import onnx

from tilewright.frontends.rewrites.rule import Constants, Shapes, Types


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


def constants_in(graph: onnx.GraphProto) -> Constants:
    """Returns the constants of a graph by name: initializers and Constants."""
    constants: Constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
    return constants
