"""Tests that the table in docs/reference/numerics-edges.md is true: small, subnormal and special arguments of every
elementwise function, in each mode."""

from __future__ import annotations

import re
from pathlib import Path

import cpu_levels
import ml_dtypes
import numpy as np
import pytest
import tilewright
from edge_functions import FUNCTIONS, Array
from onnx import TensorProto, helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

_PAGE = Path(__file__).parents[2] / "docs/reference/numerics-edges.md"
_ROW = re.compile(
    r"^\| (?P<name>\w+) \| (?P<ulps>[\d.]+|-) \| (?P<small>\w+) \| (?P<special>[^|]+)\|$", re.MULTILINE
)
_TABLE = {row["name"]: row for row in _ROW.finditer(_PAGE.read_text())}

_SMALL = np.logspace(-36, -2, 400).astype(np.float32)
_SUBNORMAL = np.array([1e-40, -1e-40, 1e-45, -1e-45], np.float32)
_SPECIAL = np.array([np.nan, -np.inf, np.inf, -0.0], np.float32)
_X = np.concatenate([_SMALL, -_SMALL, _SUBNORMAL, _SPECIAL])
_NORMAL = float(np.finfo(np.float32).tiny)


@cpu_levels.cached
def _program(numerics: str, kind: int) -> tilewright.Program:
    """Compiles all functions as one program."""
    names = _names(kind)
    nodes = [helper.make_node(name, ["x"], [f"y_{name}"], name=name) for name in names]
    graph = helper.make_graph(
        nodes,
        "edges",
        [helper.make_tensor_value_info("x", kind, _X.shape)],
        [helper.make_tensor_value_info(f"y_{name}", kind, _X.shape) for name in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return tilewright.compile(model, threads=1, numerics=numerics)  # type: ignore[arg-type]


_ONLY_F32 = ("Mish", "Softplus", "Softsign", "ThresholdedRelu")
"""Functions that ONNX or IREE has in f32 only, and Softplus, which our kernels of f16 leave to IREE without F16C."""


def _names(kind: int) -> list[str]:
    return [name for name in FUNCTIONS if kind == TensorProto.FLOAT or name not in _ONLY_F32]


@cpu_levels.cached
def _results(numerics: str, kind: int = TensorProto.FLOAT) -> dict[str, Array]:
    x = _X.astype(helper.tensor_dtype_to_np_dtype(kind))
    return dict(zip(_names(kind), _program(numerics, kind)(x), strict=True))


def _exact(name: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name](x.astype(np.float64)))


def test_the_page_has_every_function() -> None:
    assert list(_TABLE) == list(FUNCTIONS)


@pytest.mark.parametrize("numerics", ["default", "strict"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_the_relative_error_near_zero_is_at_most_what_the_page_says(name: str, numerics: str) -> None:
    small = slice(0, 2 * len(_SMALL))
    y, exact = _results(numerics)[name][small], _exact(name, _X[small])
    judged = np.isfinite(exact) & (np.abs(exact) >= 2 * _NORMAL)
    if _TABLE[name]["ulps"] == "-":
        assert np.isnan(y).all() and np.isnan(exact).all()  # no small number is in the domain
        return
    error = np.abs(y.astype(np.float64) - exact)[judged] / np.spacing(
        np.abs(exact[judged]).astype(np.float32)
    )
    assert error.max(initial=0.0) <= float(_TABLE[name]["ulps"])
    np.testing.assert_array_equal(y[exact == 0], 0)


@pytest.mark.parametrize("numerics", ["default", "strict"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_subnormal_arguments_are_kept_or_zero_as_the_page_says(name: str, numerics: str) -> None:
    at = slice(2 * len(_SMALL), 2 * len(_SMALL) + len(_SUBNORMAL))
    y, x = _results(numerics)[name][at], _X[at]
    if _TABLE[name]["small"] == "kept":
        np.testing.assert_array_equal(y, _exact(name, x).astype(np.float32))
    else:
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(y, _exact(name, np.copysign(np.float32(0), x)), rtol=1e-6)


@pytest.mark.parametrize("numerics", ["default", "strict"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_special_arguments_give_what_the_page_says(name: str, numerics: str) -> None:
    y = _results(numerics)[name][-len(_SPECIAL) :]
    said = [float(word) for word in _TABLE[name]["special"].split(" | ")[0].split(",")]
    np.testing.assert_allclose(y, said, rtol=1e-6)
    zero = np.array(said[3])
    assert np.signbit(y[3]) == np.signbit(zero) or y[3] != 0


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in _ONLY_F32])
def test_functions_of_f16_keep_subnormal_numbers(name: str) -> None:
    """By default, functions are computed in f32, where subnormal numbers of f16 are normal, and rounded once."""
    y = _results("default", TensorProto.FLOAT16)[name]
    x = _X.astype(np.float16)
    exact = _exact(name, x)
    ulp = np.maximum(np.spacing(np.abs(exact).astype(np.float16)).astype(np.float64), 2.0**-24)
    with np.errstate(all="ignore"):
        expected = exact.astype(np.float16)
        near = np.abs(y.astype(np.float64) - exact) <= 1.01 * ulp
    assert (near | (y == expected) | (np.isnan(y) & np.isnan(expected))).all()


def test_bf16_is_rounded_once() -> None:
    assert ml_dtypes.finfo(ml_dtypes.bfloat16).nmant == 7
    x = np.linspace(-3, 3, 101).astype(ml_dtypes.bfloat16)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Elu", ["x"], ["y"])],
        "elu",
        [value("x", TensorProto.BFLOAT16, x.shape)],
        [value("y", TensorProto.BFLOAT16, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    (y,) = tilewright.compile(model, threads=1)(x)
    expected = _exact("Elu", x).astype(np.float32).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(y.astype(np.float32), expected.astype(np.float32))
