"""Replacement of the types that IREE lacks, of eight bits or fewer, by bytes with their codes (`rewrites.codes`).

Casts, quantisation and dequantisation of such types become arithmetic on codes; ops that only move elements stay. The
tensors of the model's signature are bytes afterwards, and the runtime views them as their own types.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, numpy_helper

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.codes import (
    INTEGERS_IN_CODES,
    NARROW_TYPES,
    decoded,
    encoded_floats,
    encoded_integers,
)
from tilewright.frontends.rewrites.graph import constants_in, shapes_in, types_in
from tilewright.frontends.rewrites.ops.quantize import dequantised, quantised
from tilewright.frontends.rewrites.rule import Constants, Operation, Shapes, Types, is_stub, subgraphs

# fmt: off
_MOVING = frozenset((
    "Concat", "ConstantOfShape", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "If", "Loop",
    "Pad", "Reshape", "Scan", "Shape", "Size", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
))
# fmt: on
_NAMES = {value: name for name, value in TensorProto.DataType.items()}


def use_codes(model: onnx.ModelProto) -> bool:
    """Rewrites a model whose types have been inferred, in place; returns True if the model changed."""
    if not any(kind in NARROW_TYPES for kind in _kinds(model.graph)):
        return False
    opset = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    _rewrite(model.graph, opset, {}, {}, {})
    return True


def _kinds(graph: onnx.GraphProto) -> Iterable[int]:
    yield from types_in(graph).values()
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t.data_type
            if attribute.name in ("to", "output_dtype"):
                yield attribute.i
        for inner in subgraphs(node):
            yield from _kinds(inner)


def _rewrite(graph: onnx.GraphProto, opset: int, shapes: Shapes, types: Types, constants: Constants) -> None:
    shapes, types = shapes | shapes_in(graph), types | types_in(graph)
    constants = constants | constants_in(graph)
    nodes: list[NodeProto] = []
    for node in graph.node:
        for inner in subgraphs(node):
            _rewrite(inner, opset, shapes, types, constants)
        kinds = {types.get(name) for name in [*node.input, *node.output] if name}
        if node.op_type != "Constant" and kinds.isdisjoint(NARROW_TYPES):
            nodes.append(node)
            continue
        operation = Operation(node, shapes=shapes, types=types, constants=constants, opset=opset)
        if _replaced(operation, types):
            nodes += operation.made
            continue
        for attribute in node.attribute:
            if attribute.HasField("t"):
                attribute.t.CopyFrom(_in_codes(attribute.t))
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    for tensor in graph.initializer:
        tensor.CopyFrom(_in_codes(tensor))
    for value in (*graph.input, *graph.output, *graph.value_info):
        tensor_type = value.type.tensor_type
        if tensor_type.elem_type in NARROW_TYPES:
            tensor_type.elem_type = TensorProto.UINT8


def _in_codes(tensor: TensorProto) -> TensorProto:
    """Returns a tensor with its codes as bytes; that of a large initializer has no data."""
    if tensor.data_type not in NARROW_TYPES:
        return tensor
    if is_stub(tensor):
        return TensorProto(name=tensor.name, data_type=TensorProto.UINT8, dims=tensor.dims)
    return numpy_helper.from_array(numpy_helper.to_array(tensor).view(np.uint8), tensor.name)


def _replaced(operation: Operation, types: Types) -> bool:
    """Replaces an op that computes; returns False for one that moves."""
    match operation.op:
        case "Cast" | "CastLike":
            return _cast(operation, types)
        case "DequantizeLinear":
            return dequantised(operation)
        case "QuantizeLinear":
            return quantised(operation)
        case "Constant":
            return False
        case op if op in _MOVING:
            return False
    kind = next(
        types[name] for name in [*operation.inputs, *operation.outputs] if types.get(name) in NARROW_TYPES
    )
    raise ModelError(
        f"{operation.op} of {_NAMES[kind].lower()} is not supported",
        where=f"'{operation.name}'",
        hint="put Casts to another type around it in the model",
    )


def _cast(operation: Operation, types: Types) -> bool:
    source, target = operation.kind(0), types[operation.outputs[0]]
    value = operation.inputs[0]
    if TensorProto.STRING in (source, target):
        operation.refuse("strings are not supported")
    wide = source
    if source in NARROW_TYPES:
        value, wide = decoded(operation, value, source), TensorProto.FLOAT
    if target not in NARROW_TYPES:
        return operation.finish("Cast", value, to=target)
    if target in INTEGERS_IN_CODES:
        numbers = operation.cast(value, TensorProto.INT32)
        return operation.give(encoded_integers(operation, numbers, target))
    if wide not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        value, wide = operation.cast(value, TensorProto.FLOAT), TensorProto.FLOAT
    code = encoded_floats(
        operation,
        value,
        target,
        wide=wide,
        saturate=bool(operation.attribute("saturate", 1)),
        round_mode=operation.attribute("round_mode", b"up").decode(),
    )
    return operation.give(code)


def coded_types(model: onnx.ModelProto) -> dict[str, int]:
    """Returns the types of those inputs and outputs of a model that will be codes."""
    return {
        value.name: value.type.tensor_type.elem_type
        for value in (*model.graph.input, *model.graph.output)
        if value.type.tensor_type.elem_type in NARROW_TYPES
    }
