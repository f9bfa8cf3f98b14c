"""Quantised ops that IREE's importer lacks: batches of products, and convolutions of other than images."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from one_graph import one_graph
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from spelled_out_cases import OPSET

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]


@pytest.mark.parametrize("shape_of_scales", [(1,), (2, 4, 1)])
def test_quantised_batches(shape_of_scales: tuple[int, ...]) -> None:
    """This compares with numpy: no available evaluator supports scales for rows in batches."""
    rng = np.random.default_rng(3)
    left, right = rng.integers(-128, 128, (2, 4, 7), np.int8), rng.integers(-128, 128, (2, 7, 5), np.int8)
    steps = rng.uniform(0.01, 0.1, shape_of_scales).astype(np.float32)
    inputs = {
        "a": left,
        "a_scale": steps,
        "a_zero": np.full(steps.shape, 3, np.int8),
        "b": right,
        "b_scale": np.array([0.05], np.float32),
        "b_zero": np.array([-4], np.int8),
        "y_scale": np.array([0.7], np.float32),
        "y_zero": np.array([9], np.int8),
    }
    node = helper.make_node("QLinearMatMul", list(inputs), ["y"])
    model = one_graph([node], inputs, {}, (TensorProto.INT8, (2, 4, 5)), opset=OPSET)
    (y,) = tilewright.compile(model, threads=1)(*inputs.values())
    exact = (left.astype(int) - 3) @ (right.astype(int) + 4) * (steps.astype(float) * 0.05 / 0.7)
    expected = np.clip(np.rint(exact) + 9, -128, 127)
    assert np.abs(y - expected).max() <= 1  # f32 may round to the other side of a half


@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
@pytest.mark.parametrize("sizes", [(11,), (5, 4, 3)], ids=["sequence", "volume"])
def test_quantised_convolutions_of_other_than_images(sizes: tuple[int, ...], op: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (2, 3, *sizes)).astype(np.uint8)
    taps = [2] * len(sizes)
    constants = {"w": rng.integers(0, 256, (4, 3, *taps)).astype(np.uint8)}
    zeros = {"xz": np.array(7, np.uint8), "wz": np.array(130, np.uint8)}
    pads = [1] * len(sizes) + [0] * len(sizes)
    if op == "ConvInteger":
        node = helper.make_node(op, ["x", "w", "xz", "wz"], ["y"], pads=pads)
        kind = TensorProto.INT32
        constants |= zeros
    else:
        node = helper.make_node(op, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], pads=pads)
        kind = TensorProto.UINT8
        scales = {"xs": 0.25, "ws": 0.125, "ys": 32.0}
        constants |= zeros | {name: np.array(value, np.float32) for name, value in scales.items()}
        constants["yz"] = np.array(128, np.uint8)
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, {"x": x, **constants})
    model = one_graph([node], {"x": x}, constants, (kind, expected.shape), opset=OPSET)
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(x)[0], expected)
