"""The judge of `tilewright check`: wrong elements, lost NaNs, cancelling sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from conftest import make_model, value
from onnx import helper
from tilewright.reference.judging import Judge

Array = np.ndarray[Any, Any]


def _judge(outputs: list[str], nodes: list[onnx.NodeProto], x: Array) -> Judge:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    model = make_model(nodes, [value("x", x.shape, kind)], [value(name, x.shape, kind) for name in outputs])
    return Judge(model, [x])


def test_one_wrong_element_of_many_is_found() -> None:
    x = np.ones(100_000, np.float32)
    judge = _judge(["y"], [helper.make_node("Neg", ["x"], ["y"])], x)
    y = -x
    assert not judge.differences([y])
    y[777] = -1.001
    (difference,) = judge.differences([y])
    assert "at [777]: -1.001 instead of -1" in str(difference)


def test_a_lost_nan_is_found() -> None:
    x = np.array([np.nan, 1], np.float32)
    judge = _judge(["y"], [helper.make_node("Neg", ["x"], ["y"])], x)
    assert judge.differences([np.array([0, -1], np.float32)])
    assert not judge.differences([np.array([np.nan, -1], np.float32)])


def test_cancelling_sums_may_be_off_by_their_rounding() -> None:
    """(x + 1e6) - 1e6 has an error of half an ulp of 1e6, 0.03, in f32 and none in float64."""
    x = np.linspace(0.1, 0.9, 64).astype(np.float32)
    big = helper.make_node("Constant", [], ["c"], value_float=1e6)
    nodes = [big, helper.make_node("Add", ["x", "c"], ["s"]), helper.make_node("Sub", ["s", "c"], ["y"])]
    judge = _judge(["y"], nodes, x)
    assert not judge.differences([(x + np.float32(1e6)) - np.float32(1e6)])
    assert judge.differences([x + 1])


def test_other_shapes_are_different() -> None:
    judge = _judge(["y"], [helper.make_node("Neg", ["x"], ["y"])], np.ones((2, 3), np.float32))
    (difference,) = judge.differences([-np.ones((3, 2), np.float32)])
    assert "its shape is [3, 2] instead of [2, 3]" in str(difference)
