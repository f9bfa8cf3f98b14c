"""Ops on unsigned integers stay unsigned through IREE's importer, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper

Array = np.ndarray[Any, Any]

# Most values have the highest bit set, so that they are negative when read as signed.
BYTES = np.array([[255, 3, 128, 200], [127, 129, 0, 254], [17, 201, 202, 1]], np.uint8)
DIVISORS = np.array([[2, 200, 129, 7], [255, 3, 1, 128], [4, 100, 203, 255]], np.uint8)

COMPUTED: dict[str, Callable[[Array, Array], Array]] = {
    "Abs": lambda x, y: x,
    "Max": np.maximum,
    "Min": np.minimum,
    "Div": lambda x, y: x // y,
    "Mod": lambda x, y: x % y,
    "Clip": lambda x, y: np.clip(x, 20, 210),
    "TopK": lambda x, y: np.sort(x, axis=0)[::-1][:2],
    "ReduceMax": lambda x, y: x.max(keepdims=True),
    "Greater": lambda x, y: x > y,
}
INPUTS = {"Max": "xy", "Min": "xy", "Div": "xy", "Mod": "xy", "Greater": "xy"}
CONSTANTS: dict[str, list[Array]] = {
    "Clip": [np.array(20, np.uint8), np.array(210, np.uint8)],
    "TopK": [np.array([2])],
}


def test_bytes_keep_their_sign() -> None:
    nodes, outputs = [], []
    constants: dict[str, Array] = {}
    for name in COMPUTED:
        given = {f"{name}_{place}": array for place, array in enumerate(CONSTANTS.get(name, []))}
        constants |= given
        produced = [name, "indices"] if name == "TopK" else [name]
        nodes.append(helper.make_node(name, [*INPUTS.get(name, "x"), *given], produced))
        expected = COMPUTED[name](BYTES, DIVISORS)
        kind = TensorProto.BOOL if name == "Greater" else TensorProto.UINT8
        outputs.append(value(name, [*expected.shape], kind))
    nodes[list(COMPUTED).index("TopK")].attribute.append(helper.make_attribute("axis", 0))
    inputs = [value(name, [*BYTES.shape], TensorProto.UINT8) for name in "xy"]
    program = tilewright.compile(make_model(nodes, inputs, outputs, constants), threads=1)
    results = program(BYTES, DIVISORS)
    for name, result in zip(COMPUTED, results, strict=True):
        np.testing.assert_array_equal(result, COMPUTED[name](BYTES, DIVISORS), err_msg=name)


def test_pooled_bytes_keep_their_sign() -> None:
    image = np.random.default_rng(5).integers(0, 256, (1, 2, 6, 6)).astype(np.uint8)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    model = make_model(
        [node], [value("x", [1, 2, 6, 6], TensorProto.UINT8)], [value("y", [1, 2, 3, 3], TensorProto.UINT8)]
    )
    expected = image.reshape(1, 2, 3, 2, 3, 2).max(axis=(3, 5))
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(image)[0], expected)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_the_largest_of_wider_integers(dtype: type) -> None:
    x = np.array([1, 0, 5, 3], dtype) - dtype(1)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"])
    outputs = [value("y", [2], kind), value("i", [2], TensorProto.INT64)]
    program = tilewright.compile(
        make_model([node], [value("x", [4], kind)], outputs, {"k": np.array([2])}), threads=1
    )
    values, indices = program(x)
    np.testing.assert_array_equal(values, x[[1, 2]])
    np.testing.assert_array_equal(indices, [1, 2])


@pytest.mark.parametrize(
    ("op", "inputs", "dtype"),
    [
        ("TopK", "xk", TensorProto.UINT64),
        ("ReduceL1", "x", TensorProto.UINT32),
        ("Pow", "xx", TensorProto.UINT8),
    ],
)
def test_what_cannot_keep_its_sign_is_refused(op: str, inputs: str, dtype: int) -> None:
    outputs = ["y", "i"] if op == "TopK" else ["y"]
    node = helper.make_node(op, list(inputs), outputs, name="halved")
    model = make_model([node], [value("x", [4], dtype)], [value("y", [4], dtype)], {"k": np.array([2])})
    with pytest.raises(tilewright.TilewrightError) as error:
        tilewright.compile(model)
    assert f"'halved': {op} of uint" in str(error.value) and "signed" in str(error.value)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_quotients_of_large_numbers(dtype: type) -> None:
    """Half of the numbers and of the divisors are negative as signed integers."""
    largest = np.iinfo(dtype).max
    x: Array = np.array([0, 7, largest // 2, largest // 2 + 1, largest - 1, largest], dtype)
    left, right = (part.reshape(-1).copy() for part in np.meshgrid(x, x[1:]))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("Div", ["x", "z"], ["q"]), helper.make_node("Mod", ["x", "z"], ["r"])]
    shape = [left.size]
    model = make_model(
        nodes,
        [value("x", shape, kind), value("z", shape, kind)],
        [value("q", shape, kind), value("r", shape, kind)],
    )
    quotient, rest = tilewright.compile(model, threads=1)(left, right)
    np.testing.assert_array_equal(quotient, left // right)
    np.testing.assert_array_equal(rest, left % right)


def test_exponents_and_slopes_keep_their_sign() -> None:
    base, exponent = np.array([1.01, 0.99], np.float32), np.array([200, 255], np.uint8)
    large = np.array([1, 2**31 + 5], np.uint32)
    nodes = [helper.make_node("Pow", ["b", "e"], ["p"]), helper.make_node("PRelu", ["l", "s"], ["r"])]
    inputs = [
        value("b", [2]),
        value("e", [2], TensorProto.UINT8),
        value("l", [2], TensorProto.UINT32),
        value("s", [2], TensorProto.UINT32),
    ]
    outputs = [value("p", [2]), value("r", [2], TensorProto.UINT32)]
    power, kept = tilewright.compile(make_model(nodes, inputs, outputs), threads=1)(
        base, exponent, large, large
    )
    np.testing.assert_allclose(power, base.astype(np.float64) ** exponent, rtol=1e-5)
    np.testing.assert_array_equal(kept, large)


def test_scattered_extrema_are_refused() -> None:
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], name="largest", reduction="max")
    inputs = [value("x", [4], TensorProto.UINT8), value("u", [1], TensorProto.UINT8)]
    model = make_model([node], inputs, [value("y", [4], TensorProto.UINT8)], {"i": np.array([[1]])}, opset=18)
    with pytest.raises(tilewright.TilewrightError, match="'largest': ScatterND of uint8"):
        tilewright.compile(model)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_places_of_maxima_count_from_the_beginning_of_the_tensor(dtype: type) -> None:
    """Zeros of bytes are as small as a padding of zeros would be."""
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    outputs = [value("y", [1, 2, 4, 4], element), value("i", [1, 2, 4, 4], TensorProto.INT64)]
    x: Array = np.random.default_rng(0).permutation(32).reshape(1, 2, 4, 4).astype(dtype)
    x[0, 1, :2, :2] = 0
    largest, places = tilewright.compile(
        make_model([node], [value("x", [1, 2, 4, 4], element)], outputs), threads=1
    )(x)
    for channel, row, column in np.ndindex(2, 4, 4):
        window = x[0, channel, max(0, row - 1) : row + 1, max(0, column - 1) : column + 1]
        assert largest[0, channel, row, column] == window.max()
        first = np.unravel_index(window.argmax(), window.shape)
        expected = channel * 16 + (max(0, row - 1) + first[0]) * 4 + max(0, column - 1) + first[1]
        assert places[0, channel, row, column] == expected


def test_branches_keep_signs_too() -> None:
    values = np.array([1, 128, 255], np.uint8)

    def branch(op: str) -> onnx.GraphProto:
        return helper.make_graph(
            [helper.make_node(op, ["x"], [op])], op, [], [value(op, [3], TensorProto.UINT8)]
        )

    branches = {"then_branch": branch("Abs"), "else_branch": branch("Identity")}
    model = make_model(
        [helper.make_node("If", ["c"], ["y"], **branches)],
        [value("c", [], TensorProto.BOOL), value("x", [3], TensorProto.UINT8)],
        [value("y", [3], TensorProto.UINT8)],
    )
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(np.array(True), values)[0], values)
