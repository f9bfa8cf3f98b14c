"""Arithmetic of integers is exact, and wraps around, at the ends of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from onnx import NodeProto, helper

pytestmark = pytest.mark.cpu_levels

Array = np.ndarray[Any, Any]
_TYPES = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def _run(nodes: list[NodeProto], inputs: dict[str, Array], results: dict[str, Array]) -> dict[str, Array]:
    def described(values: dict[str, Array]) -> list[Any]:
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in values.items()
        ]

    graph = helper.make_graph(nodes, "integers", described(inputs), described(results))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    program = tilewright.compile(model, threads=1)
    return dict(zip(results, program(*inputs.values()), strict=True))


def _cases(dtype: Any) -> dict[str, tuple[str, Array | None, Array]]:
    """Returns operators with their second operand, if any, and the result, by name."""
    ends = np.iinfo(dtype)
    x = _operand(dtype)
    y = np.array([3, ends.max, 2, 7, ends.max - 2, ends.max, 5, 2, 5], dtype)
    whole, part = x.astype(object), y.astype(object)
    quotients = np.where((whole < 0) != (part < 0), -(abs(whole) // abs(part)), abs(whole) // abs(part))
    with np.errstate(over="ignore"):
        cases: dict[str, tuple[str, Array | None, Array]] = {
            "add": ("Add", y, x + y),
            "sub": ("Sub", y, x - y),
            "mul": ("Mul", y, x * y),
            "max": ("Max", y, np.maximum(x, y)),
            "min": ("Min", y, np.minimum(x, y)),
            "mod": ("Mod", y, np.mod(x, y)),
            "div": ("Div", y, quotients.astype(dtype)),
            "less": ("Less", y, x < y),
        }
        if ends.min < 0:
            cases |= {
                "neg": ("Neg", None, -x),
                "abs": ("Abs", None, np.abs(x)),
                "sign": ("Sign", None, np.sign(x)),
            }
    return cases


def _operand(dtype: Any) -> Array:
    ends = np.iinfo(dtype)
    most = ends.max
    return np.array([ends.min, ends.min + 1, most, most - 1, 5, 0, 1, most // 3, most // 2 + 1], dtype)


@pytest.mark.parametrize("dtype", _TYPES, ids=lambda dtype: dtype.__name__)
def test_numbers_at_the_ends_of_a_type(dtype: Any) -> None:
    cases = _cases(dtype)
    nodes = [
        helper.make_node(op, ["x"] if y is None else ["x", f"{name}.y"], [name])
        for name, (op, y, _) in cases.items()
    ]
    inputs = {"x": _operand(dtype)} | {f"{n}.y": y for n, (_, y, _) in cases.items() if y is not None}
    results = {name: expected for name, (_, _, expected) in cases.items()}
    for name, value in _run(nodes, inputs, results).items():
        np.testing.assert_array_equal(value, results[name], name)


@pytest.mark.parametrize("dtype", _TYPES[:4], ids=lambda dtype: dtype.__name__)
def test_the_least_number_divided_by_minus_one_wraps_around(dtype: Any) -> None:
    x, y = np.full(5, np.iinfo(dtype).min, dtype), np.full(5, -1, dtype)
    nodes = [helper.make_node("Div", ["x", "y"], ["quotient"]), helper.make_node("Mod", ["x", "y"], ["rest"])]
    results = _run(nodes, {"x": x, "y": y}, {"quotient": x, "rest": x})
    np.testing.assert_array_equal(results["quotient"], x)
    np.testing.assert_array_equal(results["rest"], np.zeros(5, dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=lambda dtype: dtype.__name__)
def test_powers_of_integers(dtype: Any) -> None:
    """A negative exponent gives the fraction cut off; products that overflow wrap around."""
    x = np.array([-3, -2, -1, 0, 1, 2, 3, -5, 10, -1, -2, 1, 7], dtype)
    exponents = np.array([3, 4, 5, 0, 9, 30, 3, 2, 8, -3, -1, -4, 1], dtype)
    expected = np.array([-27, 16, -1, 1, 1, 2**30, 27, 25, 10**8, -1, 0, 1, 7], dtype)
    node = helper.make_node("Pow", ["x", "e"], ["y"])
    np.testing.assert_array_equal(_run([node], {"x": x, "e": exponents}, {"y": expected})["y"], expected)


def test_powers_of_integers_with_exponents_in_floats() -> None:
    x = np.array([-5, -1, 0, 1, 7, 9], np.int32)
    exponents = np.array([3, 3, 2, 2.5, 2, 0.5], np.float32)
    expected = np.array([-125, -1, 0, 1, 49, 3], np.int32)
    node = helper.make_node("Pow", ["x", "e"], ["y"])
    np.testing.assert_array_equal(_run([node], {"x": x, "e": exponents}, {"y": expected})["y"], expected)


def test_powers_of_f64_have_the_special_values_of_c() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([-3, -3, -1, -0.5, 1, -0.0, -0.0, 0, inf, -inf, -inf, nan, 1, nan, 0, -1, -1, 0], np.float64)
    exponents = np.array([3, 2, 5, 0.5, inf, 3, -1, -2, 2, 3, -1, 1, nan, 0, 0, inf, -inf, nan], np.float64)
    expected = np.array([-27, 9, -1, nan, 1, -0.0, -inf, inf, inf, -inf, -0.0, nan, 1, 1, 1, 1, 1, nan])
    node = helper.make_node("Pow", ["x", "e"], ["y"])
    y = _run([node], {"x": x, "e": exponents}, {"y": expected})["y"]
    np.testing.assert_allclose(y, expected, rtol=1e-10)  # IREE's f64 pow is accurate to 1e-11
    np.testing.assert_array_equal(np.signbit(y[expected == 0]), np.signbit(expected[expected == 0]))
