"""Ops of which IREE's importer computes other numbers than ONNX says, or none, rewritten as ops that it knows.

A MatMulInteger with a zero point for each row, which it takes as one for each column; a QLinearConv with a scale or
a zero point for each channel, of which it takes one; a DepthToSpace of mode CRD, whose channels it parts as if they
were blocks; an AveragePool that counts its padding, where it also counts what windows have beyond that (ceil_mode);
ONNX Runtime's QGemm, which it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.errors import ModelError

Shapes = dict[str, list[int]]


def spell_out_miscomputed(model: onnx.ModelProto) -> bool:
    """Rewrites a model whose types are inferred, in place; whether there was anything to rewrite."""
    return _rewrite_graph(model.graph, {})


def _shapes_in(graph: onnx.GraphProto) -> Shapes:
    """Of every tensor whose shape can be told; -1 is a length that cannot."""
    shapes: Shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = list(node.attribute[0].t.dims)
    for value in [*graph.input, *graph.value_info, *graph.output]:
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            shapes[value.name] = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims]
    return shapes


def _rewrite_graph(graph: onnx.GraphProto, outer: Shapes) -> bool:
    shapes = outer | _shapes_in(graph)
    nodes: list[NodeProto] = []
    is_changed = False
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                is_changed |= _rewrite_graph(attribute.g, shapes)
        operation = _Operation(node, shapes)
        rewrite = _REWRITES.get((node.domain.removeprefix("ai.onnx"), node.op_type))
        if rewrite is not None and rewrite(operation):
            nodes += operation.made
            is_changed = True
        else:
            nodes.append(node)
    if is_changed:
        del graph.node[:]
        graph.node.extend(nodes)
    return is_changed


class _Operation:
    """A node and those that replace it."""

    def __init__(self, node: NodeProto, shapes: Shapes) -> None:
        self.inputs = list(node.input)
        self.made: list[NodeProto] = []
        self._node = node
        self._shapes = shapes

    def shape(self, place: int) -> list[int]:
        """Of an input. Whether it is one number decides what the op means, so it must be known."""
        known = self._shapes.get(self.inputs[place])
        return self._unknown(place) if known is None else known

    def static_shape(self, place: int) -> list[int]:
        shape = self.shape(place)
        return self._unknown(place) if -1 in shape else shape

    def _unknown(self, place: int) -> NoReturn:
        raise ModelError(
            f"the shape of '{self.inputs[place]}', which {self._node.op_type} reads, is not known",
            where=f"'{self._node.name}'",
            hint="declare it in the graph's value_info",
        )

    def attribute(self, name: str, default: Any = None) -> Any:
        return next((helper.get_attribute_value(a) for a in self._node.attribute if a.name == name), default)

    def varies(self, place: int) -> bool:
        """Whether an input is there and has more than one number."""
        is_given = place < len(self.inputs) and self.inputs[place]
        return bool(is_given) and any(length != 1 for length in self.shape(place))

    def make(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self._node.output[0]}.spelled_out_{len(self.made)}"
        self.made.append(helper.make_node(op, list(inputs), [name], name=self._node.name, **attributes))
        return name

    def finish(self, op: str, *inputs: str) -> None:
        """What gives the result."""
        self.made.append(helper.make_node(op, list(inputs), list(self._node.output), name=self._node.name))

    def make_with_attributes(self, op: str, *inputs: str) -> str:
        """An op with the attributes of the node."""
        name = self.make(op, *inputs)
        self.made[-1].attribute.extend(self._node.attribute)
        return name

    def check_result(self, most: list[int]) -> None:
        """Refuses an image of more windows than so many, which is what ONNX's shape inference makes of some."""
        known = self._shapes.get(self._node.output[0], [])[2:]
        if any(length > limit for length, limit in zip(known, most, strict=False)):
            raise ModelError(
                f"{self._node.op_type} with ceil_mode gives {known}, with windows that begin in the padding",
                where=f"'{self._node.name}'",
                hint="declare the shape of its result in the graph's value_info",
            )

    @property
    def name(self) -> str:
        return self._node.name

    def constant(self, value: np.generic | np.ndarray) -> str:
        return self.make("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def reshape(self, value: str, shape: list[int]) -> str:
        return self.make("Reshape", value, self.constant(np.array(shape, np.int64)))

    def cast(self, value: str, kind: int) -> str:
        return self.make("Cast", value, to=kind)

    def difference(self, value: str, zero_point: str) -> str:
        """Of integers, in i32."""
        return self.make("Sub", self.cast(value, TensorProto.INT32), self.cast(zero_point, TensorProto.INT32))


def _take_off_zero_points_of_rows(operation: _Operation) -> bool:
    """Both operands less their zero points in i32, and their product, which wraps as ONNX's does."""
    if not operation.varies(2):
        return False
    left, right, rows, *others = operation.inputs
    if len(operation.shape(2)) == 1:
        rows = operation.reshape(rows, [-1, 1])
    left = operation.difference(left, rows)
    has_zero_point = bool(others and others[0])
    right = (
        operation.difference(right, others[0]) if has_zero_point else operation.cast(right, TensorProto.INT32)
    )
    operation.finish("MatMul", left, right)
    return True


def _convolve_dequantised(operation: _Operation) -> bool:
    """The convolution of what its operands stand for; the scale of a bias is the product of theirs."""
    if not (operation.varies(4) or operation.varies(5)):
        return False
    image, image_scale, image_zero, weights, scales, zeros, scale, zero, *bias = operation.inputs
    channels = [-1] + [1] * (len(operation.shape(3)) - 1)
    if operation.varies(5):
        zeros = operation.reshape(zeros, channels)
    difference = operation.difference(weights, zeros)
    steps = operation.reshape(scales, channels) if operation.varies(4) else scales
    weights = operation.make("Mul", operation.cast(difference, TensorProto.FLOAT), steps)
    factors = [operation.make("DequantizeLinear", image, image_scale, image_zero), weights]
    if bias and bias[0]:
        step = operation.make("Mul", scales, image_scale)
        factors.append(operation.make("Mul", operation.cast(bias[0], TensorProto.FLOAT), step))
    convolved = operation.make_with_attributes("Conv", *factors)
    operation.finish("QuantizeLinear", convolved, scale, zero)
    return True


def _spread_channels(operation: _Operation) -> bool:
    """Channels outermost, then the two dims of a block, each of which becomes part of a dim of the image."""
    if operation.attribute("mode", b"DCR") != b"CRD":
        return False
    side = operation.attribute("blocksize")
    batch, channels, rows, columns = operation.static_shape(0)
    left = channels // side**2
    parted = operation.reshape(operation.inputs[0], [batch, left, side, side, rows, columns])
    turned = operation.make("Transpose", parted, perm=[0, 1, 4, 2, 5, 3])
    operation.finish("Identity", operation.reshape(turned, [batch, left, rows * side, columns * side]))
    return True


def _multiply_and_scale(operation: _Operation) -> bool:
    """The sums of a QGemm in i32, its bias among them, times the scales of both factors and `alpha`."""
    left, left_scale, left_zero, right, right_scale, right_zero, *others = operation.inputs
    bias, scale, zero = (*others, "", "", "")[:3]
    if operation.varies(1) or operation.varies(2):
        raise ModelError(
            "a scale or a zero point for each row of A is not one that QGemm has", where=f"'{operation.name}'"
        )
    if operation.attribute("transA", 0):
        left = operation.make("Transpose", left, perm=[1, 0])
    if operation.attribute("transB", 0):
        right = operation.make("Transpose", right, perm=[1, 0])
    sums = operation.make("MatMulInteger", left, right, left_zero, right_zero)
    if bias:
        sums = operation.make("Add", sums, bias)
    steps = operation.make("Mul", left_scale, right_scale)
    alpha = operation.constant(np.float32(operation.attribute("alpha", 1.0)))
    factors = operation.cast(sums, TensorProto.FLOAT), operation.make("Mul", steps, alpha)
    if not scale:
        operation.finish("Mul", *factors)
        return True
    operation.finish("QuantizeLinear", operation.make("Mul", *factors), scale, *([zero] if zero else []))
    return True


def _pad_before_pooling(operation: _Operation) -> bool:
    """Zeros around the image, which windows may reach beyond uncounted; none of the op's begins in the padding."""
    counts_all = operation.attribute("ceil_mode", 0) and operation.attribute("count_include_pad", 0)
    if not counts_all or operation.attribute("auto_pad", b"NOTSET") != b"NOTSET":
        return False
    image = operation.static_shape(0)[2:]
    pads = operation.attribute("pads", [0] * 2 * len(image))
    before, after = pads[: len(image)], pads[len(image) :]
    padded = operation.make(
        "Pad", operation.inputs[0], operation.constant(np.array([0, 0, *before, 0, 0, *after], np.int64))
    )
    given = {name: operation.attribute(name) for name in ("dilations", "kernel_shape", "strides")}
    attributes = {name: value for name, value in given.items() if value is not None}
    pooled = operation.make("AveragePool", padded, ceil_mode=1, **attributes)
    steps = given["strides"] or [1] * len(image)
    begun = [-(-(size + front) // step) for size, front, step in zip(image, before, steps, strict=True)]
    operation.check_result(begun)
    bounds = ([0] * len(image), begun, range(2, 2 + len(image)))
    operation.finish("Slice", pooled, *(operation.constant(np.array(bound, np.int64)) for bound in bounds))
    return True


_REWRITES: dict[tuple[str, str], Callable[[_Operation], bool]] = {
    ("", "AveragePool"): _pad_before_pooling,
    ("", "DepthToSpace"): _spread_channels,
    ("", "MatMulInteger"): _take_off_zero_points_of_rows,
    ("", "QLinearConv"): _convolve_dequantised,
    ("com.microsoft", "QGemm"): _multiply_and_scale,
}
