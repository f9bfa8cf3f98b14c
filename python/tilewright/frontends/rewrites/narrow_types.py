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
from tilewright.frontends.rewrites.graph import Scope, graphs_in, replace_nodes, types_in
from tilewright.frontends.rewrites.ops.quantize import dequantised, quantised
from tilewright.frontends.rewrites.rule import Operation, Types, is_stub

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
    replace_nodes(model.graph, lambda node, scope: _rewritten(node, scope, opset))
    for graph in graphs_in(model.graph):
        _declare_codes(graph)
    return True


def _kinds(graph: onnx.GraphProto) -> Iterable[int]:
    for each in graphs_in(graph):
        yield from types_in(each).values()
        for attribute in (attribute for node in each.node for attribute in node.attribute):
            if attribute.HasField("t"):
                yield attribute.t.data_type
            if attribute.name in ("to", "output_dtype"):
                yield attribute.i


def _rewritten(node: NodeProto, scope: Scope, opset: int) -> list[NodeProto] | None:
    kinds = {scope.types.get(name) for name in [*node.input, *node.output] if name}
    if node.op_type != "Constant" and kinds.isdisjoint(NARROW_TYPES):
        return None
    operation = Operation(
        node, shapes=scope.shapes, types=scope.types, constants=scope.constants, opset=opset
    )
    if _replaced(operation, scope.types):
        return operation.made
    moving = NodeProto()
    moving.CopyFrom(node)
    for attribute in moving.attribute:
        if attribute.HasField("t"):
            attribute.t.CopyFrom(_in_codes(attribute.t))
    return [moving]


def _declare_codes(graph: onnx.GraphProto) -> None:
    """Gives initializers and declared values their codes' type."""
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
