"""Rewrites of ops that IREE's importer refuses, or for which it computes other numbers than ONNX specifies.

MatMulInteger: a zero point for each row is taken as one for each column. QLinearConv: of a scale or a zero point for
each channel, only one is used. QLinearMatMul: more than two dims are not supported. LSTM: peepholes are ignored; such
an op is refused here. LpNormalization: a vector of zeros is divided by zero. DepthToSpace and SpaceToDepth: in mode
CRD, channels are split as if they were blocks. GridSample: mode nearest rounds halves up, not to even, and takes
positions around the image for positions outside. Det: the elimination swaps no rows, so it divides by zero for some
matrices. Gelu: the constant of the tanh approximation has four digits only. Sign: a float constant is compared with an
integer, so the result depends on the contents of memory. AveragePool: an op that counts its padding also counts what
windows cover beyond it (ceil_mode). Pad: mode wrap makes the compiler run forever. ReduceLogSumExp: exponentials
overflow from 89 on. LRN: with a dynamic shape it kills the process or computes wrong numbers. QGemm of ONNX Runtime is
unknown to the importer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.unsigned import Types, types_in

Shapes = dict[str, list[int]]
Constants = dict[str, TensorProto]
MOST_ROWS_OF_DET = 16
"""Most rows of the matrix of a Det, because the elimination is unrolled over its rows."""


def spell_out_miscomputed(model: onnx.ModelProto) -> bool:
    """Rewrites a model whose types have been inferred, in place; returns True if the model changed."""
    return _rewrite_graph(model.graph, {}, {}, {})


def _shapes_in(graph: onnx.GraphProto) -> Shapes:
    """Returns the shape of every tensor for which it is known; a dim of -1 has an unknown length."""
    shapes: Shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = list(node.attribute[0].t.dims)
    for value in [*graph.input, *graph.value_info, *graph.output]:
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            shapes[value.name] = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims]
    return shapes


def _constants_in(graph: onnx.GraphProto) -> Constants:
    constants: Constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
    return constants


def _rewrite_graph(
    graph: onnx.GraphProto, outer: Shapes, outer_types: Types, outer_constants: Constants
) -> bool:
    shapes, types = outer | _shapes_in(graph), outer_types | types_in(graph)
    constants = outer_constants | _constants_in(graph)
    nodes: list[NodeProto] = []
    is_changed = False
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                is_changed |= _rewrite_graph(attribute.g, shapes, types, constants)
        operation = _Operation(node, shapes, types, constants)
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
    """A node, and the nodes that replace it."""

    def __init__(self, node: NodeProto, shapes: Shapes, types: Types, constants: Constants) -> None:
        self.inputs = list(node.input)
        self.made: list[NodeProto] = []
        self._node = node
        self._shapes = shapes
        self._types = types
        self._constants = constants

    def shape(self, index: int) -> list[int]:
        """Returns the shape of an input. It must be known, because the meaning of the op depends on it: a single
        number differs from a vector."""
        known = self._shapes.get(self.inputs[index])
        return self._unknown(index) if known is None else known

    def static_shape(self, index: int) -> list[int]:
        shape = self.shape(index)
        return self._unknown(index) if -1 in shape else shape

    def dtype(self, index: int) -> np.dtype[Any]:
        kind = self._types.get(self.inputs[index], TensorProto.UNDEFINED)
        return (
            self._unknown(index) if kind == TensorProto.UNDEFINED else helper.tensor_dtype_to_np_dtype(kind)
        )

    def _unknown(self, index: int) -> NoReturn:
        raise ModelError(
            f"the type or shape of '{self.inputs[index]}', which {self._node.op_type} reads, is not known",
            where=f"'{self._node.name}'",
            hint="declare it in the graph's value_info",
        )

    def integers(self, index: int) -> list[int] | None:
        """Returns the values of a constant input, or None if the input is absent."""
        if index >= len(self.inputs) or not self.inputs[index]:
            return None
        if (tensor := self._constants.get(self.inputs[index])) is None:
            raise ModelError(
                f"'{self.inputs[index]}', which {self._node.op_type} reads, is not a constant",
                where=f"'{self._node.name}'",
                hint="make it an initializer",
            )
        return [int(number) for number in numpy_helper.to_array(tensor).reshape(-1)]

    def attribute(self, name: str, default: Any = None) -> Any:
        return next((helper.get_attribute_value(a) for a in self._node.attribute if a.name == name), default)

    def varies(self, index: int) -> bool:
        """Returns True if the input is present and has more than one element."""
        is_given = index < len(self.inputs) and self.inputs[index]
        return bool(is_given) and any(length != 1 for length in self.shape(index))

    def make(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self._node.output[0]}.spelled_out_{len(self.made)}"
        self.made.append(helper.make_node(op, list(inputs), [name], name=self._node.name, **attributes))
        return name

    def finish(self, op: str, *inputs: str) -> None:
        """Makes the op that produces the result of the node."""
        self.made.append(helper.make_node(op, list(inputs), list(self._node.output), name=self._node.name))

    def make_with_attributes(self, op: str, *inputs: str) -> str:
        """Makes an op with the attributes of the node."""
        name = self.make(op, *inputs)
        self.made[-1].attribute.extend(self._node.attribute)
        return name

    def check_result(self, most: list[int]) -> None:
        """Refuses an op whose inferred image has more than `most` windows along a dim, as ONNX's shape inference gives
        for some ops."""
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
        """Makes the difference of integers, computed in i32."""
        return self.make("Sub", self.cast(value, TensorProto.INT32), self.cast(zero_point, TensorProto.INT32))


def _take_off_zero_points_of_rows(operation: _Operation) -> bool:
    """Subtracts the zero points of both operands in i32, and multiplies them; the product wraps as ONNX's does."""
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
    """Makes a convolution of the dequantised operands; the scale of a bias is the product of their scales."""
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


def _multiply_batches(operation: _Operation) -> bool:
    """Multiplies operands of more than two dims: the product of the differences, which is exact below 2^24, times the
    scales."""
    if max(len(operation.shape(0)), len(operation.shape(3))) <= 2:
        return False
    left, _, _, right, right_scale, right_zero, scale, zero = operation.inputs

    def rows(index: int) -> str:
        value = operation.inputs[index]
        return operation.reshape(value, [-1, 1]) if len(operation.shape(index)) == 1 else value

    sums = operation.make(
        "MatMul",
        operation.cast(operation.difference(left, rows(2)), TensorProto.FLOAT),
        operation.cast(operation.difference(right, right_zero), TensorProto.FLOAT),
    )
    for factor in (rows(1), right_scale):
        sums = operation.make("Mul", sums, operation.cast(factor, TensorProto.FLOAT))
    step = operation.cast(operation.reshape(scale, []), TensorProto.FLOAT)
    operation.finish("QuantizeLinear", sums, step, operation.reshape(zero, []))
    return True


def _refuse_peepholes(operation: _Operation) -> bool:
    if len(operation.inputs) > 7 and operation.inputs[7]:
        raise ModelError(
            "LSTM with peepholes is not supported, as IREE's importer leaves them out",
            where=f"'{operation.name}'",
            hint="spell the recurrence out in the model",
        )
    return False


def _divide_by_norm(operation: _Operation) -> bool:
    """Divides by the norm, and gives zeros where it is zero."""
    source = operation.inputs[0]
    is_sum = operation.attribute("p", 2) == 1
    terms = operation.make("Abs", source) if is_sum else operation.make("Mul", source, source)
    axes = operation.constant(np.array([operation.attribute("axis", -1)], np.int64))
    total = operation.make("ReduceSum", terms, axes, keepdims=1)
    norm = total if is_sum else operation.make("Sqrt", total)
    zero, one = (operation.constant(np.array(number, operation.dtype(0))) for number in (0, 1))
    is_zero = operation.make("Equal", norm, zero)
    operation.finish("Div", source, operation.make("Where", is_zero, one, norm))
    return True


def _spread_channels(operation: _Operation) -> bool:
    """Splits the channels, with the channel outermost and then the two dims of a block, and merges each of these with
    a dim of the image."""
    if operation.attribute("mode", b"DCR") != b"CRD":
        return False
    side = operation.attribute("blocksize")
    batch, channels, rows, columns = operation.static_shape(0)
    left = channels // side**2
    parted = operation.reshape(operation.inputs[0], [batch, left, side, side, rows, columns])
    turned = operation.make("Transpose", parted, perm=[0, 1, 4, 2, 5, 3])
    operation.finish("Identity", operation.reshape(turned, [batch, left, rows * side, columns * side]))
    return True


def _gather_channels(operation: _Operation) -> bool:
    """Does the inverse of `_spread_channels`."""
    if operation.attribute("mode", b"DCR") != b"CRD":
        return False
    side = operation.attribute("blocksize")
    batch, channels, rows, columns = operation.static_shape(0)
    rows, columns = rows // side, columns // side
    parted = operation.reshape(operation.inputs[0], [batch, channels, rows, side, columns, side])
    turned = operation.make("Transpose", parted, perm=[0, 1, 3, 5, 2, 4])
    operation.finish("Identity", operation.reshape(turned, [batch, channels * side**2, rows, columns]))
    return True


def _gather_nearest(operation: _Operation) -> bool:
    """Makes one gather by the index of the nearest position in the image. The importer has no support for reflected
    positions."""
    padding = operation.attribute("padding_mode", b"zeros")
    if operation.attribute("mode", b"linear") != b"nearest" or padding not in (b"zeros", b"border"):
        return False
    batch, channels, *sides = operation.static_shape(0)
    _, *points, _ = operation.static_shape(1)
    dtype = np.dtype(np.float64 if operation.dtype(1) == np.float64 else np.float32)
    sizes = np.array(sides[::-1])  # a grid has the innermost dim first

    def compute(op: str, value: str, number: Any) -> str:
        return operation.make(op, value, operation.constant(np.asarray(number, dtype)))

    def sum_of_last(value: str) -> str:
        last = operation.constant(np.array([len(points) + 1], np.int64))
        whole = operation.make("ReduceSum", operation.cast(value, TensorProto.INT64), last, keepdims=0)
        return operation.reshape(whole, [batch, 1, int(np.prod(points))])

    grid = compute("Add", operation.cast(operation.inputs[1], helper.np_dtype_to_tensor_dtype(dtype)), 1)
    if operation.attribute("align_corners", 0):
        positions = compute("Mul", grid, (sizes - 1) / 2)
    else:
        positions = compute("Mul", compute("Sub", compute("Mul", grid, sizes), 1), 0.5)
    positions = operation.make("Round", positions)
    # NaN fails both comparisons, and is mapped to some position inside the image.
    is_after, is_before = (
        compute("GreaterOrEqual", positions, 0),
        compute("LessOrEqual", positions, sizes - 1),
    )
    first, last = (operation.constant(number.astype(dtype)) for number in (0 * sizes, sizes - 1))
    within = operation.make("Where", is_before, operation.make("Where", is_after, positions, first), last)
    steps = np.cumprod([1, *sizes[:-1]], dtype=np.int64)
    strided = operation.make("Mul", operation.cast(within, TensorProto.INT64), operation.constant(steps))
    numbers = operation.make(
        "Expand", sum_of_last(strided), operation.constant(np.array([1, channels, 1], np.int64))
    )
    image = operation.reshape(operation.inputs[0], [batch, channels, int(np.prod(sides))])
    picked = operation.make("GatherElements", image, numbers, axis=2)
    if padding == b"zeros":
        count = sum_of_last(operation.make("And", is_after, is_before))
        is_within = operation.make("Equal", count, operation.constant(np.int64(len(sides))))
        picked = operation.make(
            "Where", is_within, picked, operation.constant(np.zeros((), operation.dtype(0)))
        )
    operation.finish("Identity", operation.reshape(picked, [batch, channels, *points]))
    return True


def _eliminate_rows(operation: _Operation) -> bool:
    """Makes a Gaussian elimination with partial pivoting: each step swaps the row of a column's largest element with
    the first row, then removes the first row and column."""
    *_, rows, _ = operation.shape(0)
    if not 0 < rows <= MOST_ROWS_OF_DET:
        raise ModelError(
            f"Det of matrices of {rows if rows >= 0 else 'an unknown number of'} rows is not supported, as IREE's "
            f"importer finds it without pivots; at most {MOST_ROWS_OF_DET} are",
            where=f"'{operation.name}'",
            hint="factor the matrix in the model",
        )
    dtype, left = operation.dtype(0), operation.inputs[0]
    zero, one, minus = (operation.constant(np.array(number, dtype)) for number in (0, 1, -1))
    rank = len(operation.shape(0))

    def part(value: str, axis: int, begin: int, end: int) -> str:
        bounds = ([begin], [end], [rank + axis])
        return operation.make("Slice", value, *(operation.constant(np.array(b, np.int64)) for b in bounds))

    products: list[str] = []
    for count in range(rows, 1, -1):
        column = part(left, -1, 0, 1)
        index = operation.make("ArgMax", operation.make("Abs", column), axis=rank - 2, keepdims=1)
        numbers = operation.constant(np.arange(count, dtype=np.int64).reshape(count, 1))
        is_pivot = operation.make("Equal", index, numbers)
        chosen = operation.make("Where", is_pivot, left, zero)
        axes = operation.constant(np.array([rank - 2], np.int64))
        pivot_row = operation.make("ReduceSum", chosen, axes, keepdims=1)
        pivot = part(pivot_row, -1, 0, 1)
        is_first = operation.make("Equal", index, operation.constant(np.array(0, np.int64)))
        products.append(operation.make("Mul", pivot, operation.make("Where", is_first, one, minus)))
        swapped = operation.make("Where", is_pivot, part(left, -2, 0, 1), left)
        below, right = part(part(swapped, -2, 1, count), -1, 1, count), part(pivot_row, -1, 1, count)
        # A column of zeros gives a determinant of zero, whatever the other columns hold.
        divisor = operation.make("Where", operation.make("Equal", pivot, zero), one, pivot)
        factors = operation.make("Div", part(part(swapped, -2, 1, count), -1, 0, 1), divisor)
        left = operation.make("Sub", below, operation.make("Mul", factors, right))
    for product in products:
        left = operation.make("Mul", left, product)
    axes = operation.constant(np.array([rank - 2, rank - 1], np.int64))
    operation.finish("Squeeze", left, axes)
    return True


def _multiply_and_scale(operation: _Operation) -> bool:
    """Multiplies the sums of a QGemm in i32, including its bias, by the scales of both operands and `alpha`."""
    left, left_scale, left_zero, right, right_scale, right_zero, *others = operation.inputs
    bias, scale, zero = (*others, "", "", "")[:3]
    if operation.varies(1) or operation.varies(2):
        raise ModelError(
            "QGemm does not support a scale or a zero point for each row of A", where=f"'{operation.name}'"
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
    """Pads the image with zeros, which count, before pooling; windows may reach beyond the padding uncounted. No
    window of the op begins in the padding behind the image."""
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
    windows = [-(-(size + front) // step) for size, front, step in zip(image, before, steps, strict=True)]
    operation.check_result(windows)
    bounds = ([0] * len(image), windows, range(2, 2 + len(image)))
    operation.finish("Slice", pooled, *(operation.constant(np.array(bound, np.int64)) for bound in bounds))
    return True


def _shift_exponentials(operation: _Operation) -> bool:
    """Computes log Σ exp(x - m) + m, where m is the maximum, or zero if that is infinite."""
    dtype, x = operation.dtype(0), operation.inputs[0]
    axes, declared = (*operation.inputs[1:], "")[0], operation.attribute("axes")
    is_of_none = operation.attribute("noop_with_empty_axes", 0) and not axes
    if not np.issubdtype(dtype, np.floating) or is_of_none or (axes and operation.shape(1) == [0]):
        return False
    if declared is None:
        largest = operation.make("ReduceMax", x, *([axes] if axes else []), keepdims=1)
    else:  # an attribute up to opset 17, also of ReduceMax
        axes = operation.constant(np.array(declared, np.int64))
        largest = operation.make("ReduceMax", x, axes=declared, keepdims=1)
    zero = operation.constant(np.zeros((), dtype))
    shift = operation.make("Where", operation.make("IsInf", largest), zero, largest)
    terms = operation.make("Exp", operation.make("Sub", x, shift))
    total = operation.make("ReduceSum", terms, *([axes] if axes else []), keepdims=1)
    result = operation.make("Add", operation.make("Log", total), shift)
    if operation.attribute("keepdims", 1):
        operation.finish("Identity", result)
    else:
        operation.finish("Squeeze", result, *([axes] if axes else []))
    return True


def _sum_neighbouring_squares(operation: _Operation) -> bool:
    """Computes x / (bias + alpha/size Σ x²)^beta with one slice of the padded channels for each channel of a
    window."""
    shape = operation.shape(0)
    if -1 not in shape or shape[1] < 0:
        return False
    x, size, dtype = operation.inputs[0], operation.attribute("size"), operation.dtype(0)

    def number(value: float) -> str:
        return operation.constant(np.array(value, dtype))

    def ints(*values: int) -> str:
        return operation.constant(np.array(values, np.int64))

    before, others = (size - 1) // 2, [0] * (len(shape) - 2)
    sides = ints(0, before, *others, 0, size - 1 - before, *others)
    padded = operation.make("Pad", operation.make("Mul", x, x), sides)
    slices = [
        operation.make("Slice", padded, ints(first), ints(first + shape[1]), ints(1)) for first in range(size)
    ]
    mean = operation.make(
        "Mul", operation.make("Sum", *slices), number(operation.attribute("alpha", 1e-4) / size)
    )
    divisor = operation.make("Add", mean, number(operation.attribute("bias", 1.0)))
    operation.finish("Div", x, operation.make("Pow", divisor, number(operation.attribute("beta", 0.75))))
    return True


def _choose_sign(operation: _Operation) -> bool:
    """Computes the sign by comparisons with a zero of the same type."""
    dtype = operation.dtype(0)
    if np.issubdtype(dtype, np.integer):
        return False
    x = operation.inputs[0]
    zero, one, minus_one = (operation.constant(np.array(value, dtype)) for value in (0, 1, -1))
    not_above = operation.make("Where", operation.make("Less", x, zero), minus_one, zero)
    operation.finish("Where", operation.make("Greater", x, zero), one, not_above)
    return True


def _gelu_by_tanh(op: _Operation) -> bool:
    """Computes x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2; the importer has 0.797724 for √(2/π) = 0.797885.

    Narrow floats are computed in f32, because the constant has more digits than they hold.
    """
    if op.attribute("approximate", b"none") != b"tanh":
        return False
    dtype = op.dtype(0)
    wide = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)

    def number(value: float) -> str:
        return op.constant(wide.type(value))

    x = op.inputs[0] if dtype == wide else op.cast(op.inputs[0], helper.np_dtype_to_tensor_dtype(wide))
    cube = op.make("Mul", op.make("Mul", x, x), x)
    inner = op.make("Add", x, op.make("Mul", cube, number(0.044715)))
    tanh = op.make("Tanh", op.make("Mul", inner, number(math.sqrt(2 / math.pi))))
    half = op.make("Mul", x, number(0.5))
    factor = op.make("Add", tanh, number(1))
    if dtype == wide:
        op.finish("Mul", half, factor)
    else:
        op.finish("CastLike", op.make("Mul", half, factor), op.inputs[0])
    return True


def _gather_wrapped(operation: _Operation) -> bool:
    """Gathers along each dim by indices modulo its length; elements that negative amounts remove are not repeated."""
    if operation.attribute("mode", b"constant") != b"wrap":
        return False
    shape, pads = operation.shape(0), operation.integers(1) or []
    axes = operation.integers(3)
    axes = list(range(len(shape))) if axes is None else [axis % len(shape) for axis in axes]
    padded = operation.inputs[0]
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        if before == after == 0:
            continue
        first, last = max(0, -before), shape[axis] + min(0, after)
        if first >= last:
            raise ModelError(
                f"a Pad of mode wrap cannot repeat dim {axis}, because it is empty or its length is not known",
                where=f"'{operation.name}'",
                hint="declare the shape of its input in the graph's value_info",
            )
        length = last - first
        positions = first + np.arange(-max(0, before), length + max(0, after), dtype=np.int64) % length
        padded = operation.make("Gather", padded, operation.constant(positions), axis=axis)
    operation.finish("Identity", padded)
    return True


_REWRITES: dict[tuple[str, str], Callable[[_Operation], bool]] = {
    ("", "AveragePool"): _pad_before_pooling,
    ("", "DepthToSpace"): _spread_channels,
    ("", "Det"): _eliminate_rows,
    ("", "Gelu"): _gelu_by_tanh,
    ("", "GridSample"): _gather_nearest,
    ("", "LRN"): _sum_neighbouring_squares,
    ("", "LSTM"): _refuse_peepholes,
    ("", "LpNormalization"): _divide_by_norm,
    ("", "MatMulInteger"): _take_off_zero_points_of_rows,
    ("", "Pad"): _gather_wrapped,
    ("", "QLinearConv"): _convolve_dequantised,
    ("", "QLinearMatMul"): _multiply_batches,
    ("", "ReduceLogSumExp"): _shift_exponentials,
    ("", "Sign"): _choose_sign,
    ("", "SpaceToDepth"): _gather_channels,
    ("com.microsoft", "QGemm"): _multiply_and_scale,
}
