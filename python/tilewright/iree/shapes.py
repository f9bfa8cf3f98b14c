"""Arithmetic on shapes, as exporters leave it in a graph, replaced by its values.

IREE's importer must know every shape, and ONNX's shape inference follows only some of the ops that exporters compute
shapes by: a Mod or a Cast on the way is enough to lose the rank of all that comes behind (PyTorch's attention
has both).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

from tilewright.signature import Array

_MOST_ELEMENTS = 256
"""Of a value that is kept here; a shape has fewer."""

# Computed from values alone, giving at most as many elements as broadcasting or joining the operands does.
# fmt: off
_BOUNDED = frozenset((
    "Abs", "Add", "And", "Cast", "Ceil", "Concat", "Constant", "Div", "Equal", "Floor", "Gather", "Greater",
    "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "ReduceMax",
    "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Transpose",
    "Unsqueeze", "Where",
))
# fmt: on

# Elements of the result of an op that makes more of them, from its operands.
_GROWING: dict[str, Callable[..., float]] = {
    "ConstantOfShape": lambda shape: math.prod(shape.tolist()),
    "Expand": lambda value, shape: value.size * math.prod(shape.tolist()),
    "Range": lambda start, limit, delta: (limit - start) / delta if delta else math.inf,
    "Tile": lambda value, repeats: value.size * math.prod(repeats.tolist()),
}


def fold_shapes(model: onnx.ModelProto) -> bool:
    """Replaces what follows from known shapes by constants, in place; whether there was anything.

    Types must have been inferred, and may be known of more tensors if they are inferred again afterwards. Folded are
    integers, booleans and single numbers: a table of floats is a weight, and IREE's to fold.
    """
    folder = _Folder(model)
    nodes = [folder.fold(node) or node for node in model.graph.node]
    if not folder.is_changed:
        return False
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return True


class _Folder:
    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self.is_changed = False
        self._opsets = model.opset_import
        self._types = {v.name: v for v in [*graph.input, *graph.value_info]}
        self._results = {v.name for v in graph.output}
        self._values: dict[str, Array] = {
            t.name: numpy_helper.to_array(t)
            for t in graph.initializer
            if t.raw_data and math.prod(t.dims) <= _MOST_ELEMENTS
        }

    def fold(self, node: NodeProto) -> NodeProto | None:
        """The constant that replaces a node, or nothing."""
        if node.domain not in ("", "ai.onnx") or len(node.output) != 1:
            return None
        value = self._evaluate(node)
        if value is None or value.size > _MOST_ELEMENTS or (value.dtype.kind not in "iub" and value.size > 1):
            return None
        self._values[node.output[0]] = value
        if node.op_type == "Constant" or node.output[0] in self._results:
            return None
        self.is_changed = True
        tensor = numpy_helper.from_array(value)
        return helper.make_node("Constant", [], list(node.output), name=node.name, value=tensor)

    def _evaluate(self, node: NodeProto) -> Array | None:
        if node.op_type in ("Shape", "Size"):
            shaped = _zeros_like(self._types.get(node.input[0]))
            return None if shaped is None else self._run(node, {node.input[0]: shaped})
        operands = {name: self._values[name] for name in node.input if name in self._values}
        if any(name and name not in operands for name in node.input):
            return None
        if grown := _GROWING.get(node.op_type):
            if grown(*(operands[name] for name in node.input)) > _MOST_ELEMENTS:
                return None
        elif node.op_type not in _BOUNDED:
            return None
        return self._run(node, operands)

    def _run(self, node: NodeProto, operands: dict[str, Array]) -> Array | None:
        """By ONNX's own evaluator; nothing where it refuses, as IREE is to say what is wrong then."""
        from onnx.reference import ReferenceEvaluator

        inputs = [_describe(name, array) for name, array in operands.items()]
        graph = helper.make_graph([node], "node", inputs, [ValueInfoProto(name=node.output[0])])
        try:
            with np.errstate(all="raise"):
                (value,) = ReferenceEvaluator(helper.make_model(graph, opset_imports=self._opsets)).run(
                    None, operands
                )
        except Exception:  # what it raises is not documented
            return None
        return np.asarray(value) if isinstance(value, np.ndarray | np.generic) else None


def _describe(name: str, array: Array) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _zeros_like(value: ValueInfoProto | None) -> Array | None:
    """Zeros of a shape, if all of it is known, in the memory of one."""
    if value is None or not value.type.tensor_type.HasField("shape"):
        return None
    dims = value.type.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") for dim in dims):
        return None
    return np.broadcast_to(np.float32(0), [dim.dim_value for dim in dims])
