"""Rules that replace one op each, and the operation that a rule sees.

A rule is a function of an `Operation`: it makes the nodes that replace the node and returns True, or returns False if
the node is right as it is. It needs types and shapes, which ONNX infers, and asks for them: if one is not known yet,
the node waits until the nodes before it have been replaced (`rewrites.legalize`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.errors import ModelError

Shapes = dict[str, list[int]]
Constants = dict[str, TensorProto]
Types = dict[str, int]
Makers = dict[str, NodeProto]
Dtype = np.dtype[Any]

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
NARROW_FLOATS = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


OWN_DOMAIN = "tilewright"
"""Domain of ops that a rule makes for another one to replace."""
CONTRIB_DOMAIN = "com.microsoft"
"""Domain of ONNX Runtime's own ops."""
UNSUPPORTED = "nothing else supports it"
"""The reason of a rule for an op that neither IREE's importer nor ONNX's own definition covers."""


class UnknownType(ModelError):
    """The type or shape of an operand is not known (yet)."""


@dataclass(frozen=True)
class Rule:
    """A rewrite of an op, and what the documentation says about it."""

    op: str
    rewrite: Callable[[Operation], bool]
    why: str
    """What is wrong without the rule, or that nothing else supports the op: the rest of a sentence after a colon."""
    domain: str = ""
    forms: str = "all"
    """The forms of the op that the rule replaces: types, attributes, numbers of inputs."""
    needs_types: bool = True
    """False if the rule applies before types are inferred, because ONNX's checker refuses the op as it is."""


class Operation:
    """A node, and the nodes that replace it.

    `tag` makes the names of new values unique, if the op that produces the result of the node is replaced again.
    """

    def __init__(
        self,
        node: NodeProto,
        *,
        shapes: Shapes,
        types: Types,
        constants: Constants,
        opset: int,
        makers: Makers | None = None,
        tag: str = "",
    ) -> None:
        self.inputs: list[str] = list(node.input)
        self.outputs: list[str] = list(node.output)
        self.made: list[NodeProto] = []
        self.opset = opset
        self._node = node
        self._shapes = shapes
        self._types = types
        self._constants = constants
        self._makers = makers or {}
        self._tag = tag

    # Questions about the node

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def op(self) -> str:
        return self._node.op_type

    def has(self, index: int) -> bool:
        """Returns True if an input is present."""
        return 0 <= index < len(self.inputs) and bool(self.inputs[index])

    def maker(self, index: int) -> NodeProto | None:
        """Returns the node that computes an input, or None for an input of the graph or an initializer."""
        return self.maker_of(self.inputs[index])

    def maker_of(self, name: str) -> NodeProto | None:
        """Returns the same for any value by its name."""
        return self._makers.get(name)

    def wants(self, index: int) -> bool:
        """Returns True if an output is present."""
        return 0 <= index < len(self.outputs) and bool(self.outputs[index])

    def attribute(self, name: str, default: Any = None) -> Any:
        return next((helper.get_attribute_value(a) for a in self._node.attribute if a.name == name), default)

    def shape(self, index: int) -> list[int]:
        """Returns the shape of an input, with -1 for a dim of unknown length. The rank must be known, because the
        meaning of many ops depends on it."""
        known = self._shapes.get(self.inputs[index])
        return self._unknown(self.inputs[index]) if known is None else known

    def rank(self, index: int) -> int:
        return len(self.shape(index))

    def static_shape(self, index: int) -> list[int]:
        shape = self.shape(index)
        return self._open(self.inputs[index]) if -1 in shape else shape

    def lengths(self, index: int, *axes: int) -> list[int]:
        """Returns the lengths of some dims of an input, which must be known."""
        shape = self.shape(index)
        found = [shape[axis] for axis in axes]
        return self._open(self.inputs[index]) if -1 in found else found

    def shape_of_sample(self, index: int) -> list[int]:
        """Returns the shape of an input, with 0 for a batch of unknown size; the other dims must be known.

        A Reshape takes a 0 for the size that its operand has in the same place.
        """
        batch, *_ = self.shape(index)
        return [max(0, batch), *self.lengths(index, *range(1, self.rank(index)))]

    def result_shape(self, index: int = 0) -> list[int] | None:
        """Returns the inferred or declared shape of an output, with -1 for a dim of unknown length, if it is known."""
        return self._shapes.get(self.outputs[index])

    def kind(self, index: int) -> int:
        """Returns the element type of an input, as ONNX numbers it."""
        return self.kind_of(self.inputs[index])

    def dtype(self, index: int) -> Dtype:
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.kind(index)))

    def kind_of(self, name: str) -> int:
        """Returns the element type of any value by its name."""
        kind = self._types.get(name, TensorProto.UNDEFINED)
        return self._unknown(name) if kind == TensorProto.UNDEFINED else kind

    def is_float(self, index: int) -> bool:
        return self.kind(index) in FLOATS

    def value(self, index: int) -> np.ndarray[Any, Any] | None:
        """Returns the value of an input that is a constant held in the graph; None if it is absent or not constant."""
        return self.value_of(self.inputs[index]) if self.has(index) else None

    def value_of(self, name: str) -> np.ndarray[Any, Any] | None:
        """Returns the value of any constant held in the graph by its name; None if there is none."""
        tensor = self._constants.get(name)
        return None if tensor is None or is_stub(tensor) else np.asarray(numpy_helper.to_array(tensor))

    def is_constant(self, index: int) -> bool:
        return self.has(index) and self.inputs[index] in self._constants

    def integers(self, index: int) -> list[int] | None:
        """Returns the values of a constant input, or None if the input is absent."""
        if not self.has(index):
            return None
        if (value := self.value(index)) is None:
            self.refuse(
                f"'{self.inputs[index]}', which it reads, is not a constant", "make it an initializer"
            )
        return [int(number) for number in value.reshape(-1)]

    def varies(self, index: int) -> bool:
        """Returns True if the input is present and has more than one element."""
        return self.has(index) and any(length != 1 for length in self.shape(index))

    def check_result(self, most: list[int]) -> None:
        """Refuses an op whose inferred image has more than `most` windows along a dim, as ONNX's shape inference gives
        for some ops."""
        known = (self.result_shape() or [])[2:]
        if any(length > limit for length, limit in zip(known, most, strict=False)):
            self.refuse(
                f"with ceil_mode it gives {known}, with windows that begin in the padding",
                "declare the shape of its result in the graph's value_info",
            )

    def refuse(self, reason: str, hint: str | None = None) -> NoReturn:
        raise ModelError(f"{self.op}: {reason}", where=f"'{self.name}'", hint=hint)

    def _unknown(self, name: str) -> NoReturn:
        raise UnknownType(
            f"the type or shape of '{name}', which {self.op} reads, is not known",
            where=f"'{self.name}'",
            hint="declare it in the graph's value_info",
        )

    def _open(self, name: str) -> NoReturn:
        raise UnknownType(
            f"the sizes of '{name}', which {self.op} reads, are not known",
            where=f"'{self.name}'",
            hint="fix the model's open dims with dims=, or declare them in the graph's value_info",
        )

    # Making nodes

    def make(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self._first_output}.spelled_out{self._tag}_{len(self.made)}"
        self.made.append(helper.make_node(op, list(inputs), [name], name=self._node.name, **attributes))
        return name

    def make_many(self, op: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """Makes an op with several results."""
        names = [
            f"{self._first_output}.spelled_out{self._tag}_{len(self.made)}_{number}"
            for number in range(count)
        ]
        self.made.append(helper.make_node(op, list(inputs), names, name=self._node.name, **attributes))
        return names

    def finish(self, op: str, *inputs: str, output: int = 0, **attributes: Any) -> bool:
        """Makes the op that produces a result of the node, and returns True."""
        self.made.append(
            helper.make_node(op, list(inputs), [self.outputs[output]], name=self._node.name, **attributes)
        )
        return True

    def give(self, value: str, output: int = 0) -> bool:
        """Makes a value a result of the node, and returns True."""
        return self.finish("Identity", value, output=output)

    def give_declared(self, value: str) -> bool:
        """Makes a value of dynamic shape the first result, in the shape that the model declares if that is static."""
        shape = self.result_shape()
        return self.give(value if shape is None or -1 in shape else self.reshape(value, shape))

    def make_with_attributes(self, op: str, *inputs: str) -> str:
        """Makes an op with the attributes of the node."""
        name = self.make(op, *inputs)
        self.made[-1].attribute.extend(self._node.attribute)
        return name

    def same(self, *inputs: str, outputs: Sequence[str] | None = None, **changed: Any) -> NodeProto:
        """Makes a copy of the node with other inputs, outputs and attributes; an attribute of None is left out."""
        copy = NodeProto()
        copy.CopyFrom(self._node)
        copy.input[:] = inputs
        if outputs is not None:
            copy.output[:] = outputs
        kept = [a for a in copy.attribute if a.name not in changed]
        del copy.attribute[:]
        copy.attribute.extend(kept)
        copy.attribute.extend(
            helper.make_attribute(key, value) for key, value in changed.items() if value is not None
        )
        self.made.append(copy)
        return copy

    @property
    def _first_output(self) -> str:
        return next(filter(None, self.outputs))

    def constant(self, value: np.generic | np.ndarray[Any, Any]) -> str:
        return self.make("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def ints(self, *values: int) -> str:
        """Makes a vector of i64."""
        return self.constant(np.array(values, np.int64))

    def number(self, value: float, dtype: Dtype) -> str:
        """Makes a constant of rank 0."""
        return self.constant(np.asarray(value).astype(dtype))

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        return self.make("Reshape", value, self.ints(*shape))

    def cast(self, value: str, kind: int) -> str:
        return self.make("Cast", value, to=kind)

    def transpose(self, value: str, perm: Sequence[int]) -> str:
        return value if list(perm) == sorted(perm) else self.make("Transpose", value, perm=list(perm))

    def slice(self, value: str, axis: int, begin: int, end: int, step: int = 1) -> str:
        return self.make("Slice", value, self.ints(begin), self.ints(end), self.ints(axis), self.ints(step))

    def reduce(self, how: str, value: str, axes: Sequence[int], *, keepdims: bool = True) -> str:
        """Makes a reduction along axes: an input since opset 18, of ReduceSum since 13."""
        if self.opset >= 18 or how == "Sum":
            return self.make(f"Reduce{how}", value, self.ints(*axes), keepdims=int(keepdims))
        return self.make(f"Reduce{how}", value, axes=list(axes), keepdims=int(keepdims))

    def difference(self, value: str, zero_point: str) -> str:
        """Makes the difference of integers, computed in i32."""
        return self.make("Sub", self.cast(value, TensorProto.INT32), self.cast(zero_point, TensorProto.INT32))


def subgraphs(node: NodeProto) -> list[onnx.GraphProto]:
    """Returns the graphs that an op carries: branches and loop bodies."""
    return [graph for a in node.attribute for graph in [*([a.g] if a.HasField("g") else []), *a.graphs]]


def is_stub(tensor: TensorProto) -> bool:
    """Returns True for a large initializer, whose data is not in the graph."""
    if tensor.HasField("raw_data") or tensor.string_data:
        return False
    held = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
    return 0 not in tensor.dims and not any(held)
