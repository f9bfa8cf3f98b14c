"""Counts the arithmetic of a model's contractions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import onnx
from onnx import ModelProto, NodeProto, helper

Shapes = Mapping[str, Sequence[int]]


def contraction_flops(model: ModelProto) -> int:
    """Counts the multiplications and additions of all MatMul, Gemm and Conv; other operators are negligible beside
    them."""
    shapes = shapes_of(model)
    return sum(2 * products_of(node, shapes) for node in model.graph.node)


def shapes_of(model: ModelProto) -> Shapes:
    """Returns the shapes of all values whose shape ONNX knows or infers."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes: dict[str, Sequence[int]] = {tensor.name: tensor.dims for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        shapes[value.name] = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    return shapes


def products_of(node: NodeProto, shapes: Shapes) -> int:
    """Returns the multiply-adds of a MatMul, Gemm or Conv; 0 for other operators."""
    if node.op_type == "MatMul":
        terms = shapes[node.input[0]][-1]
    elif node.op_type == "Gemm":
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        terms = shapes[node.input[0]][0 if attributes.get("transA") else 1]
    elif node.op_type == "Conv":
        terms = math.prod(shapes[node.input[1]][1:])
    else:
        return 0
    return math.prod(shapes[node.output[0]]) * terms
