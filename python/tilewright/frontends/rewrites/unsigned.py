"""Rewrites of ops on unsigned integers that IREE's importer treats as signed; some of them are refused.

The importer respects the signedness of a type in comparisons, Max, Min and casts, but loses it in the ops below: the
numbers would be silently wrong. Most of these are rewritten to ops that respect it, in a type that holds all values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.graph import types_in
from tilewright.frontends.rewrites.rule import Types, subgraphs

_UNSIGNED: dict[int, str] = {
    TensorProto.UINT8: "uint8",
    TensorProto.UINT16: "uint16",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
}
_WIDER: dict[int, int] = {
    TensorProto.UINT8: TensorProto.INT32,
    TensorProto.UINT16: TensorProto.INT32,
    TensorProto.UINT32: TensorProto.INT64,
}
"""For each unsigned type, a signed type that holds all of its values."""


def keep_signs(model: onnx.ModelProto) -> bool:
    """Rewrites a model whose types have been inferred, in place; returns True if the model changed."""
    return _rewrite_graph(model.graph, types_in(model.graph))


def _rewrite_graph(graph: GraphProto, types: Types) -> bool:
    nodes: list[NodeProto] = []
    is_changed = False
    for node in graph.node:
        for inner in subgraphs(node):
            is_changed |= _rewrite_graph(inner, types | types_in(inner))
        rewrite = _REWRITES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        operation = _Operation(graph, node, types)
        if rewrite is None or not operation.reads_unsigned:
            nodes.append(node)
            continue
        nodes += rewrite(operation)
        is_changed = True
    if is_changed:
        del graph.node[:]
        graph.node.extend(nodes)
    return is_changed


class _Operation:
    """A node with the types that a rewrite needs, and methods to make the nodes that replace it."""

    def __init__(self, graph: GraphProto, node: NodeProto, types: Types) -> None:
        self.node = node
        self._graph = graph
        self.kinds = [types.get(operand, TensorProto.UNDEFINED) for operand in node.input]
        self._made = 0

    @property
    def reads_unsigned(self) -> bool:
        return any(kind in _UNSIGNED for kind in self.kinds[:2])

    def make(
        self, op_type: str, inputs: list[str], output: str | None = None, **attributes: Any
    ) -> NodeProto:
        """Makes a node with the location of this one; without a name, its output gets a new one."""
        self._made += 1
        output = output or f"{self.node.output[0]}.as_signed_{self._made}"
        return helper.make_node(op_type, inputs, [output], name=self.node.name, **attributes)

    def with_inputs(self, inputs: list[str], outputs: list[str]) -> NodeProto:
        """Returns a copy of this node with other operands and results."""
        copy = NodeProto()
        copy.CopyFrom(self.node)
        copy.input[:], copy.output[:] = inputs, outputs
        return copy

    def constant(self, array: np.ndarray[Any, Any], name: str) -> str:
        self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def refuse(self) -> NoReturn:
        kind = next(_UNSIGNED[kind] for kind in self.kinds if kind in _UNSIGNED)
        raise ModelError(
            f"{self.node.op_type} of {kind} is not supported, as IREE's importer takes it as signed",
            where=f"'{self.node.name}'",
            hint="put Casts to a signed type around it in the model",
        )


def _as_identity(operation: _Operation) -> list[NodeProto]:
    return [operation.make("Identity", list(operation.node.input[:1]), operation.node.output[0])]


def _clip_by_bounds(operation: _Operation) -> list[NodeProto]:
    """Clips by Max and Min, which respect the signedness."""
    value, *bounds = operation.node.input
    sides = [(op, bound) for op, bound in zip(("Max", "Min"), bounds, strict=False) if bound]
    nodes = []
    for op, bound in sides:
        nodes.append(operation.make(op, [value, bound]))
        value = nodes[-1].output[0]
    return [*nodes, operation.make("Identity", [value], operation.node.output[0])]


def _divide_wider(operation: _Operation) -> list[NodeProto]:
    """Divides in a signed type that holds all values; u64 has none, and is divided in two steps."""
    kind = operation.kinds[0]
    if kind in _WIDER and operation.kinds == [kind, kind]:
        return _in_type(operation, _WIDER[kind])
    if operation.kinds != [TensorProto.UINT64, TensorProto.UINT64]:
        operation.refuse()
    return _divide_halves(operation)


def _divide_halves(operation: _Operation) -> list[NodeProto]:
    """Divides u64: twice the quotient of half the dividend is the quotient, or one less.

    The half and a divisor below 2^63 are not negative as i64. A larger divisor goes into the dividend once or not at
    all.
    """
    nodes: list[NodeProto] = []

    def make(op: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(operation.make(op, list(inputs), **attributes))
        return str(nodes[-1].output[0])

    def number(value: np.generic, name: str) -> str:
        return operation.constant(np.asarray(value), f"{operation.node.output[0]}.{name}")

    i64, u64 = TensorProto.INT64, TensorProto.UINT64
    dividend, divisor = operation.node.input
    one, zero = number(np.int64(1), "one"), number(np.int64(0), "zero")
    half = make("Cast", make("BitShift", dividend, number(np.uint64(1), "bit"), direction="RIGHT"), to=i64)
    signed, wide = make("Cast", divisor, to=i64), make("Cast", dividend, to=i64)
    is_small = make("Greater", signed, zero)
    small = make("Where", is_small, signed, one)
    twice = make("Mul", make("Div", half, small), number(np.int64(2), "two"))
    rest = make("Cast", make("Sub", wide, make("Mul", twice, small)), to=u64)
    carry = make("Cast", make("GreaterOrEqual", rest, divisor), to=i64)
    is_once = make("Cast", make("GreaterOrEqual", dividend, divisor), to=i64)
    quotient = make("Where", is_small, make("Add", twice, carry), is_once)
    if operation.node.op_type == "Mod":
        quotient = make("Sub", wide, make("Mul", quotient, signed))
    return [*nodes, operation.make("Cast", [quotient], operation.node.output[0], to=u64)]


def _pool_in_floats(operation: _Operation) -> list[NodeProto]:
    """Pools bytes as floats, which hold all of them: pooling supports no integers but signed bytes."""
    if operation.kinds != [TensorProto.UINT8] or len(operation.node.output) > 1:
        operation.refuse()  # The indices there are relative to a plane, not to the tensor.
    return _in_type(operation, TensorProto.FLOAT)


def _in_type(operation: _Operation, kind: int) -> list[NodeProto]:
    """Computes the op in another type between casts; results beyond the first keep their own types."""
    casts = [operation.make("Cast", [operand], to=kind) for operand in operation.node.input]
    first, *others = operation.node.output
    wide = f"{first}.as_signed"
    compute = operation.with_inputs([cast.output[0] for cast in casts], [wide, *others])
    return [*casts, compute, operation.make("Cast", [wide], first, to=operation.kinds[0])]


def _pick_by_index(operation: _Operation) -> list[NodeProto]:
    """Finds the indices of the largest elements in a wider type, and gathers the values at these indices."""
    kind, (value, count) = operation.kinds[0], operation.node.input
    if kind not in _WIDER:
        operation.refuse()
    values, indices = [*operation.node.output, ""][:2]
    indices = indices or f"{values}.indices"
    axis = next((a.i for a in operation.node.attribute if a.name == "axis"), -1)
    cast = operation.make("Cast", [value], to=_WIDER[kind])
    nodes = [cast, operation.with_inputs([cast.output[0], count], [f"{values}.as_signed", indices])]
    if values:
        nodes.append(operation.make("GatherElements", [value, indices], values, axis=axis))
    return nodes


def _name_zero_points(operation: _Operation) -> list[NodeProto]:
    """Adds the optional zero points to products of bytes: without them the importer takes every byte as signed."""
    node = operation.with_inputs(list(operation.node.input), list(operation.node.output))
    node.input.extend([""] * (4 - len(node.input)))
    for index, kind in enumerate(operation.kinds[:2], start=2):
        if not node.input[index] and kind != TensorProto.UNDEFINED:
            zero = np.zeros((), helper.tensor_dtype_to_np_dtype(kind))
            node.input[index] = operation.constant(zero, f"{node.output[0]}.zero_point_{index - 2}")
    return [node]


def _combine_with_sign(operation: _Operation) -> list[NodeProto]:
    """Refuses a scatter with max or min, which compare; all other reductions are the same for both kinds of
    integers."""
    how = next((a.s for a in operation.node.attribute if a.name == "reduction"), b"none")
    if how in (b"max", b"min"):
        operation.refuse()
    return [operation.node]


def _raise_in_type_of_base(operation: _Operation) -> list[NodeProto]:
    """Casts the exponents to the floating-point type of the base; integer bases, whose powers may wrap, are
    refused."""
    base = operation.kinds[0]
    if base not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE):
        operation.refuse()
    cast = operation.make("Cast", [operation.node.input[1]], to=base)
    return [
        cast,
        operation.with_inputs([operation.node.input[0], cast.output[0]], list(operation.node.output)),
    ]


_REWRITES: dict[str, Callable[[_Operation], list[NodeProto]]] = {
    "Abs": _as_identity,
    "Clip": _clip_by_bounds,
    "ConvInteger": _name_zero_points,
    "Div": _divide_wider,
    "MatMulInteger": _name_zero_points,
    "MaxPool": _pool_in_floats,
    "Mod": _divide_wider,
    "PRelu": _as_identity,
    "Pow": _raise_in_type_of_base,
    "ReduceL1": _Operation.refuse,
    "ReduceL2": _Operation.refuse,
    "ReduceMean": _Operation.refuse,
    "ScatterElements": _combine_with_sign,
    "ScatterND": _combine_with_sign,
    "TopK": _pick_by_index,
}
REPLACED = frozenset(_REWRITES)
"""Ops that are replaced, or refused, on unsigned integers."""
