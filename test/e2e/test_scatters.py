"""Tests of scatters: each element looks for the updates that hit it, in kernels of ours."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tilewright.reference.oracle import Array, float64_reference, relative_error, tolerance

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=4)]

_REDUCTIONS = ["none", "add", "mul", "max", "min"]
_TYPES = {
    TensorProto.FLOAT: np.float32,
    TensorProto.FLOAT16: np.float16,
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
    TensorProto.INT8: np.int8,
}


def _model(
    op: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    reduction: str,
    element: int,
    *,
    places: Array | None = None,
    **attributes: int,
) -> ModelProto:
    """Returns a scatter into `2 x`, as x may be updated in place. `places` are constant, or an input."""
    data, updates = shapes
    inputs = [
        helper.make_tensor_value_info("x", element, data),
        helper.make_tensor_value_info("new", element, updates),
    ]
    known = []
    if places is None:
        rank = [*updates[:1], 1] if op == "ScatterND" else updates
        inputs.append(helper.make_tensor_value_info("places", TensorProto.INT64, rank))
    else:
        known.append(numpy_helper.from_array(places, "places"))
    nodes = [
        helper.make_node("Add", ["x", "x"], ["twice"]),
        helper.make_node(op, ["twice", "places", "new"], ["y"], reduction=reduction, **attributes),
    ]
    graph = helper.make_graph(
        nodes, "scatter", inputs, [helper.make_tensor_value_info("y", element, data)], known
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _values(shape: tuple[int, ...], element: int) -> Array:
    """Returns small integers, so that sums and products are exact in any order."""
    return np.random.default_rng().integers(0, 3, shape).astype(_TYPES[element])


def _check(model: ModelProto, arrays: list[Array]) -> None:
    program = tilewright.compile(model, threads=[2])
    assert program.runtime == "direct", "IREE scatters"
    (expected,) = float64_reference(model, arrays)
    (actual,) = program(*arrays)
    assert relative_error(actual, expected) <= tolerance(actual.dtype)


@pytest.mark.parametrize("element", _TYPES)
@pytest.mark.parametrize("reduction", _REDUCTIONS)
def test_slices_are_updated(reduction: str, element: int) -> None:
    model = _model("ScatterND", ((7, 13), (4, 13)), reduction, element)
    # A place that is updated twice has one result only with a reduction.
    places = np.array([[2], [5], [0], [2 if reduction != "none" else 1]])
    _check(model, [_values((7, 13), element), _values((4, 13), element), places])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reduction", _REDUCTIONS)
def test_elements_are_updated(reduction: str, axis: int) -> None:
    element = TensorProto.FLOAT
    model = _model("ScatterElements", ((5, 9), (3, 4)), reduction, element, axis=axis)
    rng = np.random.default_rng()
    places = np.argsort(rng.random((3, 5) if axis else (5, 4)), axis=axis)[:3, :4]
    _check(model, [_values((5, 9), element), _values((3, 4), element), places])


@pytest.mark.parametrize("reduction", _REDUCTIONS)
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_a_single_update_at_a_known_place(op: str, reduction: str) -> None:
    """IREE takes the place for the update, or fails."""
    element = TensorProto.INT32
    places = np.array([[8]]) if op == "ScatterND" else np.array([8])
    model = _model(op, ((11,), (1,)), reduction, element, places=places)
    _check(model, [_values((11,), element), _values((1,), element)])


def test_the_last_update_of_a_place_stays() -> None:
    model = _model("ScatterND", ((4, 5), (3, 5)), "none", TensorProto.FLOAT)
    x, new = np.zeros((4, 5), np.float32), np.arange(15, dtype=np.float32).reshape(3, 5)
    (y,) = tilewright.compile(model)(x, new, np.array([[1], [1], [3]]))
    np.testing.assert_array_equal(y, [x[0], new[1], x[2], new[2]])


def test_updates_of_a_transposed_convolution() -> None:
    """Its kernel reads digits of digits of an index, whose bounds must be known."""
    rng = np.random.default_rng(3)
    x, weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 3, 6, 2), (3, 3, 3, 2)))
    places = np.array([[1, 2, 10], [1, 2, 15]])
    new = rng.standard_normal((2, 2)).astype(np.float32)
    known = {"weights": weights, "places": places, "new": new}
    nodes = [
        helper.make_node("ConvTranspose", ["x", "weights"], ["convolved"], pads=[0, 1, 2, 0], strides=[3, 1]),
        helper.make_node("ScatterND", ["convolved", "places", "new"], ["y"], reduction="max"),
    ]
    graph = helper.make_graph(
        nodes,
        "scatter",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 3, 16, 2))],
        [numpy_helper.from_array(value, name) for name, value in known.items()],
    )
    _check(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), [x])
