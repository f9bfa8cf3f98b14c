"""A model of unrelated single operators in one element type; the result of each is an output of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from benchmarks.workloads.operators.left_out import is_left_out

Array = np.ndarray[Any, Any]

OPSET = 22
"""The first opset in which all elementwise operators have bf16."""
NEWEST_OPSET = 28
"""An opset that has all operators of ONNX 1.23."""
_IR_VERSION = 10
_NEWEST_IR_VERSION = 13

ELEMENTS: Mapping[str, int] = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "i8": TensorProto.INT8,
    "u8": TensorProto.UINT8,
    "i32": TensorProto.INT32,
    "i64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}
"""Element types of the suite by name."""
NUMPY_TYPES: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(ml_dtypes.bfloat16) if name == "bf16" else helper.tensor_dtype_to_np_dtype(element)
    for name, element in ELEMENTS.items()
}
FLOATS = ("f32", "f16", "bf16")

# Operators whose first input is not their data.
_DATA_OPERAND = {"Where": 1, "Compress": 0, "OneHot": 2, "If": 0, "Loop": 2}


@cache
def types_of(op: str, opset: int) -> tuple[str, ...]:
    """Returns the suite's types that ONNX allows for the data of an operator and that are not left out."""
    schema = onnx.defs.get_schema(op, opset)
    allowed = schema.inputs[_DATA_OPERAND.get(op, 0)].types
    names = {name: str(TensorProto.DataType.Name(element)).lower() for name, element in ELEMENTS.items()}
    return tuple(
        name for name in ELEMENTS if f"tensor({names[name]})" in allowed and not is_left_out(op, name)
    )


class OpModel:
    """Nodes, constants, inputs and outputs of a model under construction, whose data have the type `dtype`."""

    def __init__(self, name: str, dtype: str, *, opset: int = OPSET) -> None:
        self.dtype, self.opset = dtype, opset
        self._name = name
        self._rng = np.random.default_rng(list(name.encode()))
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[TensorProto] = []
        self._inputs: dict[tuple[str, tuple[int, ...], str], onnx.ValueInfoProto] = {}
        self._outputs: dict[str, tuple[int, ...] | None] = {}

    @property
    def is_float(self) -> bool:
        """True if the data are floating-point numbers."""
        return self.dtype in FLOATS

    @property
    def is_empty(self) -> bool:
        """True if no operator takes the type."""
        return not self._outputs

    def takes(self, op: str) -> bool:
        """Returns True if the operator is checked in the model's type."""
        return self.dtype in types_of(op, self.opset)

    def input(self, *shape: int, dtype: str | None = None, name: str = "x") -> str:
        """Returns the input of this shape, type and name; `random_inputs` says which values a name stands for."""
        key = (name, shape, dtype or self.dtype)
        if key not in self._inputs:
            unique = f"{name}{len(self._inputs)}"
            self._inputs[key] = helper.make_tensor_value_info(unique, ELEMENTS[key[2]], shape)
        return self._inputs[key].name

    def constant(self, array: Array) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def number(self, value: float, dtype: str | None = None) -> str:
        """Returns a scalar constant, in the model's type unless another is given."""
        return self.constant(np.array(value, NUMPY_TYPES[dtype or self.dtype]))

    def ints(self, *values: int) -> str:
        """Returns a vector of i64, such as axes."""
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape: int) -> str:
        """Returns a constant whose products with unit inputs, summed over all but its first axis, are of order one."""
        count = max(1, int(np.prod(shape[1:])))
        return self.constant(
            (self._rng.standard_normal(shape) / np.sqrt(count)).astype(NUMPY_TYPES[self.dtype])
        )

    def numbers(self, *shape: int) -> str:
        """Returns a constant of numbers between -1 and 2, whole numbers in types of whole numbers."""
        low = 0 if self.dtype in ("u8", "bool") else -1
        drawn = self._rng.uniform(low, 2, shape) if self.is_float else self._rng.integers(low, 3, shape)
        return self.constant(np.asarray(drawn).astype(NUMPY_TYPES[self.dtype]))

    def ops(self, op: str, *operands: str, results: int = 1, **attributes: Any) -> list[str]:
        """Adds a node and returns its results."""
        names = [f"{op.lower()}_{len(self._nodes)}{f'_{at}' if at else ''}" for at in range(results)]
        node = helper.make_node(op, list(operands), names, name=names[0])
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self._nodes.append(node)
        return names

    def op(self, op: str, *operands: str, **attributes: Any) -> str:
        """Adds a node that is not checked by itself."""
        return self.ops(op, *operands, **attributes)[0]

    def check(
        self,
        op: str,
        *operands: str,
        results: int = 1,
        shape: tuple[int, ...] | None = None,
        **attributes: Any,
    ) -> None:
        """Adds a node whose results are outputs, if the operator is checked in the model's type.

        ONNX infers the shapes of most; `shape` is that of a result in the model's type for which it does not.
        """
        if self.takes(op):
            names = self.ops(op, *operands, results=results, **attributes)
            self._outputs |= dict.fromkeys(names, shape)

    def build(self) -> ModelProto:
        """Returns the model; ONNX infers the types and shapes of its outputs."""
        graph = helper.make_graph(self._nodes, self._name, list(self._inputs.values()), [], self._constants)
        used = {name for node in graph.node for name in operands(node)}
        _keep(graph.input, used)
        _keep(graph.initializer, used)
        is_new = self.opset > OPSET
        model = helper.make_model(
            graph,
            producer_name="tilewright-workloads",
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=_NEWEST_IR_VERSION if is_new else _IR_VERSION,
        )
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        known = {value.name: value for value in inferred.graph.value_info}
        for name, shape in self._outputs.items():
            given = helper.make_tensor_value_info(name, ELEMENTS[self.dtype], shape)
            model.graph.output.append(known[name] if shape is None else given)
        return model


def operands(node: onnx.NodeProto) -> list[str]:
    """Returns the values that a node reads, those that its graphs capture included."""
    names = list(node.input)
    graphs: Sequence[GraphProto] = [
        each.g for each in node.attribute if each.type == onnx.AttributeProto.GRAPH
    ]
    return names + [name for graph in graphs for inner in graph.node for name in operands(inner)]


def _keep(values: Any, used: set[str]) -> None:
    kept = [value for value in values if value.name in used]
    del values[:]
    values.extend(kept)
