"""The oracle's products of bytes, which ONNX Runtime gets wrong on processors without VNNI."""

from __future__ import annotations

import numpy as np
import pytest
from one_graph import one_graph
from onnx import TensorProto, helper
from tilewright.reference.oracle import float64_reference

SHAPES = {
    "MatMulInteger": ((2, 64), (64, 3), (2, 3)),
    "ConvInteger": ((1, 64, 2, 1), (3, 64, 1, 1), (1, 3, 2, 1)),
}


@pytest.mark.parametrize("op", SHAPES)
def test_sums_of_large_products_are_exact(op: str) -> None:
    """255 times 127 added in pairs leaves the range of 16 bits."""
    x_shape, w_shape, y_shape = SHAPES[op]
    x, w = np.full(x_shape, 255, np.uint8), np.full(w_shape, 127, np.int8)
    model = one_graph(
        [helper.make_node(op, ["x", "w"], ["y"])], {"x": x}, {"w": w}, (TensorProto.INT32, y_shape)
    )
    (y,) = float64_reference(model, [x])
    assert (y == 64 * 255 * 127).all()


def test_zero_points_of_filters_are_taken_off() -> None:
    x, w = np.full((1, 2, 3, 3), 7, np.uint8), np.full((2, 2, 1, 1), 5, np.int8)
    zeros = {"w": w, "xz": np.array(3, np.uint8), "wz": np.array([1, -2], np.int8)}
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"])
    (y,) = float64_reference(one_graph([node], {"x": x}, zeros, (TensorProto.INT32, (1, 2, 3, 3))), [x])
    assert (y[0, 0] == 2 * 4 * 4).all() and (y[0, 1] == 2 * 4 * 7).all()
