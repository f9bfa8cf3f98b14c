"""Single contractions in every type and form: matmuls, convolutions, and the ops around them in models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from fuzz.builder import IR_VERSION, OPSET, Array, Attribute, Shape
from fuzz.op_table import OpCase

_TYPES: dict[str, tuple[int, np.dtype[Any]]] = {
    "f32": (TensorProto.FLOAT, np.dtype(np.float32)),
    "f16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "bf16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
    "f64": (TensorProto.DOUBLE, np.dtype(np.float64)),
}

# These are operand shapes of matmuls: odd sizes, both sides of 64, a single row, a single column, and batches that
# broadcast.
_MATMULS: tuple[tuple[Shape, Shape], ...] = (
    ((7, 33), (33, 65)),
    ((1, 128), (128, 257)),
    ((67, 63), (63, 129)),
    ((130, 70), (70, 1)),
    ((3, 5, 19), (3, 19, 11)),
    ((2, 3, 9, 21), (21, 13)),
    ((31,), (31, 6)),
    ((6, 31), (31,)),
)

# Each entry has the name, input, filter and attributes of a convolution. Filters are weights.
_CONVOLUTIONS: tuple[tuple[str, Shape, Shape, dict[str, Attribute]], ...] = (
    ("1x1", (1, 24, 9, 11), (17, 24, 1, 1), {}),
    ("1x1-stride-2", (1, 24, 14, 14), (17, 24, 1, 1), {"strides": [2, 2]}),
    ("3x3", (1, 5, 9, 11), (17, 5, 3, 3), {"pads": [1] * 4}),
    ("3x3-stride-2", (1, 5, 13, 11), (17, 5, 3, 3), {"strides": [2, 2], "pads": [1] * 4}),
    ("7x7-stride-2", (1, 3, 23, 21), (16, 3, 7, 7), {"strides": [2, 2], "pads": [3] * 4}),
    ("dilated", (1, 5, 13, 11), (7, 5, 3, 3), {"dilations": [2, 2]}),
    ("depthwise", (1, 8, 9, 11), (8, 1, 3, 3), {"group": 8, "pads": [1] * 4}),
    ("depthwise-stride-2", (1, 8, 9, 11), (8, 1, 3, 3), {"group": 8, "strides": [2, 2]}),
    (
        "depthwise-stride-2-padded",
        (1, 3, 19, 67),
        (3, 1, 3, 5),
        {"group": 3, "strides": [2, 2], "pads": [1, 2] * 2},
    ),
    ("grouped", (1, 8, 9, 11), (12, 4, 3, 3), {"group": 2, "pads": [1] * 4}),
    ("1d-stride-2", (1, 6, 27), (10, 6, 3), {"strides": [2]}),
    ("3d", (1, 4, 5, 7, 9), (6, 4, 3, 3, 3), {}),
)


def contraction_table() -> list[OpCase]:
    """Returns every contraction in every type. The list is deterministic, and ids are unique."""
    return [case for dtype in _TYPES for case in _cases(dtype)]


def _cases(dtype: str) -> Iterator[OpCase]:
    for left, right in _MATMULS:
        shapes = "x".join(map(str, left)) + "-" + "x".join(map(str, right))
        yield _case(f"matmul-{dtype}-{shapes}", [("MatMul", "x0 x1", {})], dtype, [left, right])
        if len(right) == 2:
            dense: _Node = ("MatMul", "x0 w0", {})
            yield _case(f"dense-{dtype}-{shapes}", [dense], dtype, [left], weights=[right])
    gemm: dict[str, Attribute] = {"transA": 1, "transB": 1, "alpha": 0.5}
    yield _case(f"gemm-{dtype}", [("Gemm", "x0 x1 x2", gemm)], dtype, [(37, 66), (29, 37), (29,)])
    mlp: list[_Node] = [
        ("MatMul", "x0 w0", {}), ("Relu", "v0", {}), ("MatMul", "v1 w1", {}), ("Add", "v2 x0", {}),
    ]  # fmt: skip
    yield _case(f"mlp-{dtype}", mlp, dtype, [(2, 35, 24)], weights=[(24, 67), (67, 24)])
    attention: list[_Node] = [
        ("Transpose", "x0", {"perm": [0, 2, 1]}), ("MatMul", "x0 v0", {}), ("Softmax", "v1", {"axis": -1}),
        ("MatMul", "v2 x0", {}), ("Add", "v3 x0", {}),
    ]  # fmt: skip
    yield _case(f"attention-{dtype}", attention, dtype, [(3, 21, 16)])
    for name, image, filter_, attributes in _CONVOLUTIONS:
        conv: _Node = ("Conv", "x0 w0", {"kernel_shape": list(filter_[2:]), **attributes})
        yield _case(f"conv-{dtype}-{name}", [conv], dtype, [image], weights=[filter_])
    transposed: _Node = ("ConvTranspose", "x0 w0", {"strides": [2, 2]})
    yield _case(f"convtranspose-{dtype}", [transposed], dtype, [(1, 6, 7, 9)], weights=[(6, 5, 3, 3)])


_Node = tuple[str, str, dict[str, Attribute]]
"""An operator, its operands, and its attributes. The result of node number n is called "vn"."""


def _case(
    identifier: str,
    nodes: Sequence[_Node],
    dtype: str,
    inputs: Sequence[Shape],
    *,
    weights: Sequence[Shape] = (),
) -> OpCase:
    element, numpy_type = _TYPES[dtype]
    rng = np.random.default_rng(list(identifier.encode()))
    arrays = [rng.standard_normal(shape).astype(numpy_type) for shape in inputs]
    # The scale keeps the variance: the fan-in is the size of the weight divided by its largest dim, taken as that of
    # the result.
    constants = [
        (rng.standard_normal(shape) / math.sqrt(math.prod(shape) / max(shape))).astype(numpy_type)
        for shape in weights
    ]
    return OpCase(identifier, _model(identifier, nodes, element, arrays, constants), tuple(arrays))


def _model(
    name: str, nodes: Sequence[_Node], element: int, inputs: Sequence[Array], weights: Sequence[Array]
) -> ModelProto:
    made = []
    for number, (op, operands, attributes) in enumerate(nodes):
        made.append(helper.make_node(op, operands.split(), [f"v{number}"]))
        made[-1].attribute.extend(helper.make_attribute(key, given) for key, given in attributes.items())
    values = [
        helper.make_tensor_value_info(f"x{number}", element, array.shape)
        for number, array in enumerate(inputs)
    ]
    initializers = [numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(weights)]
    result = f"v{len(nodes) - 1}"
    graph = helper.make_graph(
        made, name, values, [helper.make_tensor_value_info(result, element, None)], initializers
    )
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
    shaped = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    model.graph.output[0].CopyFrom(shaped.output[0])
    return model
