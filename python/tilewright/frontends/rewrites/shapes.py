"""Constant folding of shape arithmetic that exporters leave in a graph.

IREE's importer must know every shape, and ONNX's shape inference follows only some of the ops by which exporters
compute shapes: one Mod or Cast is enough to lose the ranks of all tensors behind it (PyTorch's attention has both).
ONNX's own evaluator computes the values. The passes of onnx-ir (1.1) do not fold: they lift constants to initializers,
inline functions and remove unused nodes, and their shape inference is ONNX's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from tilewright.records.signature import Array

_MOST_ELEMENTS = 16
"""Most elements of a value that is folded: shapes have fewer, and a longer Range is an index, which our passes
recognise."""

# Ops computed from values alone, whose result has at most as many elements as broadcasting or joining the operands
# gives.
# fmt: off
_BOUNDED = frozenset((
    "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Concat", "Constant", "Div", "Equal", "Floor", "Gather",
    "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or",
    "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Shape", "Size", "Slice", "Split", "Sqrt",
    "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where",
))
# fmt: on

# Elements of the result, from the operands, of ops that may produce more of them.
_GROWING: dict[str, Callable[..., float]] = {
    "ConstantOfShape": lambda shape: math.prod(shape.tolist()),
    "Expand": lambda value, shape: value.size * math.prod(shape.tolist()),
    "Range": lambda start, limit, delta: (limit - start) / delta if delta else math.inf,
    "Tile": lambda value, repeats: value.size * math.prod(repeats.tolist()),
}


def fold_shapes(model: onnx.ModelProto) -> bool:
    """Replaces values that follow from known shapes by constants, in place; returns True if the model changed.

    Types must have been inferred; inferring them again afterwards may find more. Integers, booleans and single numbers
    are folded; a table of floats is a weight, which IREE folds. An If with a known condition becomes its branch.
    """
    folder = _Folder(model)
    nodes = [new for node in model.graph.node for new in folder.fold(node)]
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

    def fold(self, node: NodeProto) -> list[NodeProto]:
        """Returns the nodes that replace a node, usually the node itself."""
        if node.domain not in ("", "ai.onnx"):
            return [node]
        if node.op_type == "If" and node.input[0] in self._values:
            taken = "then_branch" if self._values[node.input[0]].all() else "else_branch"
            return self._inlined(node, next(a.g for a in node.attribute if a.name == taken))
        values = self._evaluate(node)
        if values is None or not all(_is_foldable(value) for value in values):
            return [node]
        self._values |= zip(node.output, values, strict=True)
        if node.op_type == "Constant" or not self._results.isdisjoint(node.output):
            return [node]
        self.is_changed = True
        return [
            helper.make_node("Constant", [], [name], name=node.name, value=numpy_helper.from_array(value))
            for name, value in zip(node.output, values, strict=True)
        ]

    def _inlined(self, node: NodeProto, branch: GraphProto) -> list[NodeProto]:
        """Returns the nodes of a branch under unique names, because two branches may use the same names."""
        self.is_changed = True
        made = [name for inner in branch.node for name in inner.output] + [t.name for t in branch.initializer]
        names = {name: f"{node.output[0]}.{name}" for name in made if name}
        nodes = [
            helper.make_node("Constant", [], [t.name], name=node.name, value=t) for t in branch.initializer
        ]
        results = [
            helper.make_node("Identity", [names.get(value.name, value.name)], [name], name=node.name)
            for value, name in zip(branch.output, node.output, strict=True)
            if name
        ]
        # The results keep their names, which the branch may use for its own.
        return [*(_renamed(inner, names) for inner in (*nodes, *branch.node)), *results]

    def _evaluate(self, node: NodeProto) -> list[Array] | None:
        operands = {name: self._operand(node, name) for name in node.input if name}
        known = {name: value for name, value in operands.items() if value is not None}
        if len(known) < len(operands):
            return None
        if grown := _GROWING.get(node.op_type):
            if grown(*(known[name] for name in node.input)) > _MOST_ELEMENTS:
                return None
        elif node.op_type not in _BOUNDED:
            return None
        return self._run(node, known)

    def _operand(self, node: NodeProto, name: str) -> Array | None:
        """Returns the value of an operand, or any value of its shape and type if only these matter."""
        if name in self._values or name not in self._types:
            return self._values.get(name)
        tensor = self._types[name].type.tensor_type
        if node.op_type in ("Shape", "Size"):
            return _zeros(tensor)
        is_example = node.op_type == "CastLike" and name != node.input[0]
        return np.zeros((), helper.tensor_dtype_to_np_dtype(tensor.elem_type)) if is_example else None

    def _run(self, node: NodeProto, operands: dict[str, Array]) -> list[Array] | None:
        """Evaluates a node with ONNX's own evaluator; returns None if that fails, so that IREE reports what is
        wrong."""
        from onnx.reference import ReferenceEvaluator

        inputs = [_describe(name, array) for name, array in operands.items()]
        graph = helper.make_graph([node], "node", inputs, [ValueInfoProto(name=name) for name in node.output])
        model = helper.make_model(graph, opset_imports=self._opsets)
        try:
            with np.errstate(all="raise"):
                results = ReferenceEvaluator(model).run(None, operands)
        except Exception:  # the exceptions it raises are not documented
            return None
        return [np.asarray(result) for result in results]


def _renamed(node: NodeProto, names: dict[str, str]) -> NodeProto:
    """Returns a copy of a node with its tensors renamed, also in nested graphs."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for graph in (attribute.g for attribute in copy.attribute if attribute.HasField("g")):
        inner = [_renamed(each, names) for each in graph.node]
        del graph.node[:]
        graph.node.extend(inner)
        for value in graph.output:
            value.name = names.get(value.name, value.name)
    return copy


def _is_foldable(value: Array) -> bool:
    return (
        value.size <= _MOST_ELEMENTS
        if value.dtype.kind in "iub"
        else value.dtype.kind == "f" and value.size == 1
    )


def _describe(name: str, array: Array) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _zeros(tensor: TypeProto.Tensor) -> Array | None:
    """Returns zeros of a fully known shape, in the memory of one element; None if the shape is not known."""
    dims = tensor.shape.dim
    if not tensor.HasField("shape") or not all(dim.HasField("dim_value") for dim in dims):
        return None
    return np.broadcast_to(np.float32(0), [dim.dim_value for dim in dims])
