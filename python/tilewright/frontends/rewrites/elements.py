"""Elements of tensors along an axis, in the forms in which exporters take them, and put them together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, numpy_helper

from tilewright.frontends.rewrites.unrolled import Values


@dataclass(frozen=True)
class Element:
    """An element of a tensor along an axis, without that axis."""

    tensor: str
    axis: int
    index: int


def element_of(values: Values, name: str) -> Element | None:
    """Returns the element of a tensor that a value is: a Gather, or a Squeeze of a Slice or of a part of a Split."""
    node = values.node_of(name)
    if node is None:
        return None
    if node.op_type == "Gather":
        index = _number(values, node, 1)
        return None if index is None else _element(values, node.input[0], attribute(node, "axis", 0), index)
    part = values.node_of(node.input[0]) if node.op_type == "Squeeze" else None
    if part is None or not values.is_static(node.input[0]):
        return None
    axis = _only(_integers(values, node, 1))
    if axis is None:
        return None
    axis %= len(values.shapes[node.input[0]])
    if part.op_type == "Slice" and values.shapes[node.input[0]][axis] == 1:
        begin = _only(_integers(values, part, 1))
        along = _only(_integers(values, part, 3)) if len(part.input) > 3 else 0
        if begin is not None and along is not None and along % len(values.shapes[node.input[0]]) == axis:
            return _element(values, part.input[0], axis, begin)
    if part.op_type == "Split" and values.is_static(part.input[0]):
        length = values.shapes[part.input[0]][axis]
        if attribute(part, "axis", 0) % len(values.shapes[part.input[0]]) == axis and length == len(
            part.output
        ):
            return _element(values, part.input[0], axis, list(part.output).index(node.input[0]))
    return None


def joined_elements(values: Values, node: NodeProto) -> tuple[tuple[str, ...], int] | None:
    """Returns the values that a node puts together along a new axis, and that axis: a Concat of Unsqueezes."""
    if node.op_type != "Concat":
        return None
    parts = [values.node_of(name) for name in node.input]
    names, axes = [], set()
    for part in parts:
        axis = _only(_integers(values, part, 1)) if part is not None and part.op_type == "Unsqueeze" else None
        if part is None or axis is None or not values.is_static(part.input[0]):
            return None
        names.append(part.input[0])
        axes.add(axis % (len(values.shapes[part.input[0]]) + 1))
    axis = axes.pop()
    along = attribute(node, "axis", 0) % (len(values.shapes[names[0]]) + 1)
    return None if axes or along != axis else (tuple(names), axis)


def attribute(node: NodeProto, name: str, default: int) -> int:
    """Returns an attribute that is an integer."""
    return next((int(each.i) for each in node.attribute if each.name == name), default)


def _element(values: Values, tensor: str, axis: int, index: int) -> Element | None:
    if not values.is_static(tensor):
        return None
    shape = values.shapes[tensor]
    axis %= len(shape)
    return Element(tensor, axis, index % shape[axis])


def _integers(values: Values, node: NodeProto, index: int) -> Sequence[int] | None:
    tensor = values.constants.get(node.input[index]) if len(node.input) > index else None
    return None if tensor is None else [int(number) for number in np.ravel(numpy_helper.to_array(tensor))]


def _number(values: Values, node: NodeProto, index: int) -> int | None:
    """Returns an input that is a constant of rank 0."""
    tensor = values.constants.get(node.input[index])
    return None if tensor is None or list(tensor.dims) else int(numpy_helper.to_array(tensor))


def _only(numbers: Sequence[int] | None) -> int | None:
    return numbers[0] if numbers is not None and len(numbers) == 1 else None
