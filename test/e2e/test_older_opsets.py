"""Tests of models from before opset 17, with other inputs, attributes and defaults of the same ops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tilewright
from onnx import NodeProto, TensorProto, helper, numpy_helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

onnxruntime = pytest.importorskip("onnxruntime")

_Weights = dict[str, np.ndarray]


def _ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def _floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def _softmax(opset: int) -> tuple[list[NodeProto], _Weights]:
    """Builds a Softmax, which before opset 13 ran over all dims from the axis on."""
    return [helper.make_node("Softmax", ["x"], ["y"], axis=1)], {}


def _slice_and_unsqueeze(opset: int) -> tuple[list[NodeProto], _Weights]:
    if opset < 10:
        first = helper.make_node("Slice", ["x"], ["s"], starts=[1], ends=[3], axes=[1])
    else:
        first = helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["s"])
    weights = {"starts": _ints(1), "ends": _ints(3), "axes": _ints(1)} if opset >= 10 else {}
    return [first, helper.make_node("Unsqueeze", ["s"], ["y"], axes=[0])], weights


def _clip_and_sum(opset: int) -> tuple[list[NodeProto], _Weights]:
    if opset < 11:
        first = helper.make_node("Clip", ["x"], ["c"], min=-0.5, max=1.0)
    else:
        first = helper.make_node("Clip", ["x", "least", "most"], ["c"])
    weights = {"least": np.float32(-0.5), "most": np.float32(1)} if opset >= 11 else {}
    return [first, helper.make_node("ReduceSum", ["c"], ["y"], axes=[2])], weights


def _normalise_and_pool(opset: int) -> tuple[list[NodeProto], _Weights]:
    """Builds a normalisation and pooling, and a dropout that does nothing."""
    weights = {name: _floats(*np.linspace(0.5, 2, 4)) for name in ("scale", "shift", "mean", "variance")}
    return [
        helper.make_node("BatchNormalization", ["x", *weights], ["n"]),
        helper.make_node("MaxPool", ["n"], ["p"], kernel_shape=[2, 2], strides=[1, 2]),
        helper.make_node("Dropout", ["p"], ["y"]),
    ], weights


def _multiply(opset: int) -> tuple[list[NodeProto], _Weights]:
    """Multiplies by a weight that is large enough to be stored separately."""
    weights = {"w": np.random.default_rng(1).standard_normal((6, 300)).astype(np.float32)}
    return [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Softmax", ["m"], ["y"])], weights


def _enlarge(opset: int) -> tuple[list[NodeProto], _Weights]:
    kind = "Upsample" if opset < 10 else "Resize"
    if opset < 9:
        return [helper.make_node(kind, ["x"], ["y"], mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])], {}
    inputs = ["x", "scales"] if opset < 11 else ["x", "region", "scales"]
    weights = {"region": _floats(), "scales": _floats(1, 1, 2, 2)}
    return [helper.make_node(kind, inputs, ["y"], mode="nearest")], {k: weights[k] for k in inputs[1:]}


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 12])
@pytest.mark.parametrize(
    "build", [_softmax, _slice_and_unsqueeze, _clip_and_sum, _normalise_and_pool, _multiply, _enlarge]
)
def test_older_opsets(build: Callable[[int], tuple[list[NodeProto], _Weights]], opset: int) -> None:
    nodes, weights = build(opset)
    shape = [3, 4, 5, 6]
    value = numpy_helper.from_array
    graph = helper.make_graph(
        nodes,
        "older",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [value(np.asarray(weight), name) for name, weight in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)
    x = np.random.default_rng(opset).standard_normal(shape).astype(np.float32)
    (y,) = tilewright.compile(model)(x)
    (known,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert y.shape == known.shape
    np.testing.assert_allclose(y, known, rtol=1e-5, atol=1e-6)
