"""Ops that rules replace, compiled: elementwise ops, casts, scatters and contractions that IREE gets wrong."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright
from legalized_cases import check, evaluated, model_of
from onnx import helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]


Array = np.ndarray[Any, Any]


_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3e4, -3e4, 7.0, -np.nan, 2.0)


_FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", _FLOATS)
def test_nan_propagates_through_extrema_and_signs(dtype: type) -> None:
    """A NaN is the left or right operand, variable or beside a constant, and alone or among the elements of a row."""
    x = np.tile(np.array(_SPECIAL), (3, 3))[:, :31].astype(dtype)
    z = x[:, ::-1].copy()
    wide_x, wide_z = x.astype(np.float64), z.astype(np.float64)
    constants = {"low": np.array(-1, dtype), "high": np.array(2, dtype), "axis": np.array([1])}
    nodes = [
        helper.make_node("Max", ["x", "z"], ["max"]),
        helper.make_node("Min", ["x", "z"], ["min"]),
        helper.make_node("Max", ["x", "high", "z"], ["max_of_three"]),
        helper.make_node("Min", ["x", "high"], ["min_of_constant"]),
        helper.make_node("Clip", ["x", "low", "high"], ["clip"]),
        helper.make_node("Clip", ["x", "low"], ["clip_below"]),
        helper.make_node("Clip", ["x", "", "high"], ["clip_above"]),
        helper.make_node("Sign", ["x"], ["sign"]),
        helper.make_node("Relu", ["x"], ["relu"]),
        helper.make_node("ReduceMax", ["x", "axis"], ["row_max"], keepdims=0),
    ]
    with np.errstate(invalid="ignore"):
        wide = {
            "max": np.maximum(wide_x, wide_z),
            "min": np.minimum(wide_x, wide_z),
            "max_of_three": np.maximum(np.maximum(wide_x, 2), wide_z),
            "min_of_constant": np.minimum(wide_x, 2),
            "clip": np.clip(wide_x, -1, 2),
            "clip_below": np.maximum(wide_x, -1),
            "clip_above": np.minimum(wide_x, 2),
            "sign": np.sign(wide_x),
            "relu": np.maximum(wide_x, 0),
            "row_max": wide_x.max(axis=1),
        }
    check(nodes, {"x": x, "z": z}, {name: y.astype(dtype) for name, y in wide.items()}, constants)


@pytest.mark.parametrize("dtype", _FLOATS)
def test_nan_equals_nothing(dtype: type) -> None:
    """The second comparison is of a value with an equal op on the same operand, which compilers merge."""
    x = np.tile(np.array(_SPECIAL), 3).astype(dtype)
    nodes = [
        helper.make_node("Equal", ["x", "x"], ["same"]),
        helper.make_node("Not", ["same"], ["is_nan"]),
        helper.make_node("Abs", ["x"], ["left"]),
        helper.make_node("Abs", ["x"], ["right"]),
        helper.make_node("Equal", ["left", "right"], ["same_size"]),
    ]
    is_nan = np.isnan(x.astype(np.float64))
    check(nodes, {"x": x}, {"same": ~is_nan, "is_nan": is_nan, "same_size": ~is_nan})


@pytest.mark.parametrize(
    "source", [np.int8, np.int64, np.uint8, np.uint32, np.uint64, np.float32, np.float64]
)
def test_casts_to_all_integers(source: type) -> None:
    """Integers keep their low bits, and floats, which are in range here, are cut off."""
    targets = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
    nodes, inputs, expected = [], {}, {}
    for target in targets:
        name, bounds = np.dtype(target).name, np.iinfo(target)
        if np.dtype(source).kind == "f":
            largest = np.array([bounds.max], np.float64) * 0.9
            x = np.concatenate([[0, 0.5, 1.5, 100.99], largest, -largest if bounds.min else []]).astype(
                source
            )
        else:
            own = np.iinfo(source)
            x = np.array([own.min, own.max, own.max // 2 + 1, own.max // 3, 0, 1], source)
        nodes.append(
            helper.make_node(
                "Cast", [f"x_{name}"], [name], to=helper.np_dtype_to_tensor_dtype(np.dtype(target))
            )
        )
        inputs[f"x_{name}"], expected[name] = x, x.astype(target)
    check(nodes, inputs, expected)


@pytest.mark.parametrize("target", [[6, -1], [0, 12], [-1, 0]])
def test_a_shape_at_run_time(target: list[int]) -> None:
    x, shape = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array(target)
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    (expected,) = (v for k, v in evaluated(nodes, {"x": x, "shape": shape}).items() if k == "y")
    model = model_of(nodes, {"x": x, "shape": shape}, {"y": expected})
    for dim, name in zip(model.graph.output[0].type.tensor_type.shape.dim, "ab", strict=True):
        dim.dim_param = name
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(x, shape)[0], expected)


@pytest.mark.parametrize("how", ["max", "min", "mul"])
def test_scattered_updates_of_one_element_are_combined(how: str) -> None:
    rng = np.random.default_rng(0)
    x, updates = (
        rng.standard_normal((5, 4)).astype(np.float32),
        rng.standard_normal((6, 3)).astype(np.float32),
    )
    indices = rng.integers(-5, 5, (6, 3))
    nodes = [helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction=how)]
    inputs = {"x": x, "i": indices, "u": updates}
    expected = x.copy()
    combine = {"max": np.maximum, "min": np.minimum, "mul": np.multiply}[how]
    combine.at(expected, (indices % 5, np.arange(3)[None, :]), updates)
    check(nodes, inputs, {"y": expected}, rtol=1e-6)


def test_hardmax_of_an_old_opset_runs_over_all_later_dims() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    node = helper.make_node("Hardmax", ["x"], ["y"], axis=1)
    model = model_of([node], {"x": x}, {"y": x})
    model.opset_import[0].version = 11
    (y,) = tilewright.compile(model, threads=1)(x)
    expected = np.zeros((2, 12), np.float32)
    expected[np.arange(2), x.reshape(2, 12).argmax(axis=1)] = 1
    np.testing.assert_array_equal(y, expected.reshape(x.shape))


def test_groups_of_opset_18_have_a_scale_each() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 5)).astype(np.float32)
    scale, bias = rng.standard_normal((2, 3)).astype(np.float32)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=3)
    model = model_of([node], {"x": x}, {"y": x}, {"s": scale, "b": bias})
    model.opset_import[0].version = 18
    (y,) = tilewright.compile(model, threads=1)(x)
    groups = x.astype(np.float64).reshape(2, 3, 10)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    expected = normal * scale[None, :, None] + bias[None, :, None]
    np.testing.assert_allclose(y, expected.reshape(x.shape), rtol=1e-5, atol=1e-6)


def test_einsums_without_a_result() -> None:
    rng = np.random.default_rng(0)
    inputs = {
        "a": rng.standard_normal((2, 3, 4)),
        "b": rng.standard_normal((4, 5)),
        "c": rng.standard_normal((3, 4)),
    }
    narrow = {name: x.astype(np.float32) for name, x in inputs.items()}
    equations = {"kij,jl": ("a", "b"), "ba": ("c",), "...j,jk": ("a", "b"), "ij,ij": ("c", "c")}
    nodes = [
        helper.make_node("Einsum", names, [f"y{number}"], equation=equation)
        for number, (equation, names) in enumerate(equations.items())
    ]
    expected = {
        f"y{number}": np.asarray(np.einsum(equation, *(narrow[name] for name in names)), np.float32)
        for number, (equation, names) in enumerate(equations.items())
    }
    check(nodes, narrow, expected, rtol=1e-5)
