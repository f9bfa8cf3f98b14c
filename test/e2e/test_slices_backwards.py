"""Slices with negative and huge steps: bounds count from either end, and may be beyond it."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from onnx import ModelProto, TensorProto, helper, numpy_helper

_MOST = (1 << 63) - 1
_SLICES = (  # begin, end, step
    (_MOST, -_MOST, -1),
    (_MOST, -_MOST, -3),
    (99, 0, -3),
    (5, 1, -2),
    (5, -_MOST, -2),
    (-1, 3, -1),
    (-1, -7, -1),
    (-3, -7, -(1 << 63)),
    (-2, 4, -3),
    (1, _MOST, _MOST),
)


def _model(length: int | str) -> ModelProto:
    names = [f"y{index}" for index in range(len(_SLICES))]
    bounds = [
        numpy_helper.from_array(np.array([number]), f"{name}.{place}")
        for name, numbers in zip(names, _SLICES, strict=True)
        for place, number in enumerate(numbers)
    ]
    nodes = [
        helper.make_node("Slice", ["x", f"{name}.0", f"{name}.1", "axes", f"{name}.2"], [name])
        for name in names
    ]
    graph = helper.make_graph(
        nodes,
        "slices",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length, 3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}.length", 3]) for name in names],
        [*bounds, numpy_helper.from_array(np.array([0]), "axes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("length", [10, 4, "n"])
def test_elements_are_taken_from_the_end(length: int | str) -> None:
    program = tilewright.compile(_model(length), threads=1)
    for rows in (10, 7, 4) if length == "n" else (int(length),):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        for bounds, y in zip(_SLICES, program(x), strict=True):
            np.testing.assert_array_equal(y, x[slice(*bounds)], err_msg=f"{rows} rows, {bounds}")
