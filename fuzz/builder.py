"""Builder of ONNX models, and tables of the operators and types that they may use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

Array: TypeAlias = np.ndarray[Any, Any]
Shape: TypeAlias = tuple[int, ...]
Attribute: TypeAlias = float | str | Sequence[int] | Sequence[str] | onnx.GraphProto

# This is the first opset with Gelu; all of its reductions take their axes as an input.
OPSET = 20
IR_VERSION = 9

ELEMENT_TYPES: dict[str, int] = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "i8": TensorProto.INT8,
    "i32": TensorProto.INT32,
    "i64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}
NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}
FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i8", "i32", "i64")

# Pairs of operator and type that stock IREE 3.13 miscomputes on CPUs; the operator table and random graphs omit them.
# - Pow of integers is computed in floating point: every negative base gives the lowest integer.
# - ReduceMean of integers does not compile: torch.constant.int fails to legalize.
REFUSED = frozenset({("Pow", "i32"), ("Pow", "i64"), ("ReduceMean", "i32"), ("ReduceMean", "i64")})


# The first inputs of these are no data, or codes.
_DRAWN: dict[str, tuple[str, ...]] = {
    "If": (*FLOATS, *INTEGERS),
    **dict.fromkeys(("Loop", "Scan"), ("f32", "i32", "i64")),
    **dict.fromkeys(("Gemm", "Einsum", "Resize"), FLOATS),
    "MaxPool": ("f32", "f16"),
    **dict.fromkeys(
        ("QuantizeLinear", "QLinearMatMul", "MatMulInteger", "QLinearConv", "ConvInteger"), ("f32",)
    ),
}


@cache
def types_of(op: str) -> tuple[str, ...]:
    """Returns the types that ONNX allows for the operator's data and IREE supports."""
    if op in _DRAWN:
        return _DRAWN[op]
    operand = 1 if op == "Where" else 0
    allowed = onnx.defs.get_schema(op, OPSET).inputs[operand].types
    return tuple(
        dtype
        for dtype, element in ELEMENT_TYPES.items()
        if f"tensor({_schema_name(element)})" in allowed and (op, dtype) not in REFUSED
    )


def _schema_name(element: int) -> str:
    return str(TensorProto.DataType.Name(element)).lower()


def name_of(dtype: np.dtype[Any]) -> str:
    """Returns our name of a numpy type."""
    return next(name for name, candidate in NUMPY_TYPES.items() if candidate == dtype)


def operands(node: onnx.NodeProto) -> list[str]:
    """Returns the values that a node reads, those that its graphs capture included."""
    names = list(node.input)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            names += [name for inner in attribute.g.node for name in operands(inner)]
    return names


class ModelBuilder:
    """Nodes, constants, inputs and outputs of a model under construction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def input(self, shape: Shape, dtype: str) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, ELEMENT_TYPES[dtype], shape))
        return name

    def output(self, value: str, shape: Shape, dtype: str) -> None:
        self.outputs.append(helper.make_tensor_value_info(value, ELEMENT_TYPES[dtype], shape))

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def scalar(self, value: float, dtype: str) -> str:
        return self.constant(np.array(value, dtype=NUMPY_TYPES[dtype]))

    def ints(self, values: Sequence[int]) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def op(self, op_type: str, *inputs: str, **attributes: Attribute) -> str:
        return self.ops(op_type, 1, *inputs, **attributes)[0]

    def ops(self, op_type: str, results: int, *inputs: str, **attributes: Attribute) -> list[str]:
        """Adds a node with several results."""
        name = f"v{len(self.nodes)}"
        names = [name, *(f"{name}_{number}" for number in range(1, results))]
        node = helper.make_node(op_type, list(inputs), names)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self.nodes.append(node)
        return names

    def build(self) -> ModelProto:
        # A step that was abandoned may have left unused nodes and constants.
        used = {value.name for value in self.outputs}
        nodes: list[onnx.NodeProto] = []
        for node in reversed(self.nodes):
            if used.intersection(node.output):
                nodes.insert(0, node)
                used.update(operands(node))
        constants = [tensor for tensor in self.constants if tensor.name in used]
        graph = helper.make_graph(nodes, self.name, self.inputs, self.outputs, constants)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(
            graph, producer_name="tilewright-fuzz", opset_imports=[opset], ir_version=IR_VERSION
        )
