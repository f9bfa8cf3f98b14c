"""Tests that casts give what numpy gives at the edges of types: zeros, subnormal numbers, NaN, infinities, ties, and
the largest numbers that fit."""

from __future__ import annotations

from typing import Any

import cpu_levels
import ml_dtypes
import numpy as np
import pytest
import tilewright
from onnx import TensorProto, helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]

Array = np.ndarray[Any, Any]

_FLOATS = {
    "float32": (TensorProto.FLOAT, np.dtype(np.float32), np.uint32),
    "float64": (TensorProto.DOUBLE, np.dtype(np.float64), np.uint64),
    "float16": (TensorProto.FLOAT16, np.dtype(np.float16), np.uint16),
    "bfloat16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16), np.uint16),
}
_INTEGERS = {
    "int8": (TensorProto.INT8, np.dtype(np.int8)),
    "uint8": (TensorProto.UINT8, np.dtype(np.uint8)),
    "int16": (TensorProto.INT16, np.dtype(np.int16)),
    "int32": (TensorProto.INT32, np.dtype(np.int32)),
    "int64": (TensorProto.INT64, np.dtype(np.int64)),
}


def _compiled(source: int, target: int, size: int | str) -> tilewright.Program:
    node = helper.make_node("Cast", ["x"], ["y"], to=target)
    x, y = (helper.make_tensor_value_info(n, kind, [size]) for n, kind in (("x", source), ("y", target)))
    graph = helper.make_graph([node], "cast", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return tilewright.compile(model, threads=1)


def _edges(name: str) -> Array:
    """Returns a type's zeros, infinities, NaN, and the ends of its normal and subnormal numbers, with both signs."""
    _, dtype, bits = _FLOATS[name]
    info = ml_dtypes.finfo(dtype)
    smallest, largest_subnormal = (
        np.array([1], bits).view(dtype),
        (np.array([info.tiny]).astype(dtype).view(bits) - 1).view(dtype),
    )
    others = np.array([0.0, info.tiny, info.max, np.inf, np.nan, 1.0], dtype)
    magnitudes = np.concatenate([smallest, largest_subnormal, others])
    return np.concatenate([magnitudes, -magnitudes])


@pytest.mark.parametrize("size", ["static", "dynamic"])
@pytest.mark.parametrize("name", list(_FLOATS))
def test_a_float_is_true_unless_it_is_zero(name: str, size: str) -> None:
    x = _edges(name)
    (y,) = _compiled(_FLOATS[name][0], TensorProto.BOOL, len(x) if size == "static" else "n")(x)
    np.testing.assert_array_equal(y, (x.view(_FLOATS[name][2]) << 1) != 0)


@pytest.mark.parametrize("name", list(_INTEGERS))
def test_an_integer_is_true_unless_it_is_zero(name: str) -> None:
    kind, dtype = _INTEGERS[name]
    info = np.iinfo(dtype)
    x = np.array([0, 1, info.min, info.max, info.max - 1, 2, 64], dtype)
    np.testing.assert_array_equal(_compiled(kind, TensorProto.BOOL, len(x))(x)[0], x != 0)


@pytest.mark.parametrize("target", list(_INTEGERS))
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_are_cut_towards_zero_to_the_ends_of_integers(source: str, target: str) -> None:
    (kind, dtype, _), (to, integer) = _FLOATS[source], _INTEGERS[target]
    info = np.iinfo(integer)
    least, most = dtype.type(info.min), dtype.type(info.max)
    # The largest number of i64 is no float: it would round up, out of range.
    most = most if int(most) <= info.max else np.nextafter(most, dtype.type(0))
    wanted = [0.0, -0.0, 0.99, 1.5, 2.5, 100.999, least, most]
    x = np.array(wanted + ([-0.99, -1.5, -100.999] if info.min else [-0.5]), dtype)
    np.testing.assert_array_equal(_compiled(kind, to, len(x))(x)[0], np.trunc(x).astype(integer))


@pytest.mark.parametrize("target", list(_FLOATS))
@pytest.mark.parametrize("source", ["int32", "int64"])
def test_integers_round_to_the_nearest_float_ties_to_even(source: str, target: str) -> None:
    (kind, integer), (to, dtype, _) = _INTEGERS[source], _FLOATS[target]
    bits = ml_dtypes.finfo(dtype).nmant + 1
    tie = 2**bits + 1 if 2**bits < np.iinfo(integer).max else 3
    x = np.array([0, 1, -1, 255, tie, tie + 2, -tie, -tie - 2, tie + 1], integer)
    np.testing.assert_array_equal(_compiled(kind, to, len(x))(x)[0], x.astype(dtype))


@pytest.mark.parametrize(
    ("source", "target"),
    [(source, target) for source in ("float32", "float64") for target in ("float16", "bfloat16")]
    + [("float64", "float32")],
)
def test_narrowing_rounds_to_even_and_overflows_to_infinity(source: str, target: str) -> None:
    (kind, dtype, _), (to, narrow, _) = _FLOATS[source], _FLOATS[target]
    info = ml_dtypes.finfo(narrow)
    largest, step = float(info.max), float(info.eps)
    halfway = largest * (
        1 + step / 4 / (1 - step / 2)
    )  # between the largest number and the next power of two
    x = np.array(
        [largest, halfway * (1 - 1e-6), 1 + step / 2, 1 + 3 * step / 2, 0.0, -0.0, np.inf, -np.inf, np.nan],
        dtype,
    )
    y = _compiled(kind, to, len(x))(x)[0]
    with np.errstate(over="ignore"):
        expected = x.astype(narrow)
    np.testing.assert_array_equal(
        y.astype(np.float64), expected.astype(np.float64)
    )  # a NaN of bf16 equals none
    np.testing.assert_array_equal(np.signbit(y[4:6]), [False, True])


@cpu_levels.cached
def _halves() -> tilewright.Program:
    return _compiled(TensorProto.FLOAT, TensorProto.FLOAT16, 6)


def test_subnormal_numbers_of_f16_are_kept() -> None:
    x = np.array([2.0**-24, 2.0**-15, 3 * 2.0**-25, 2.0**-26, -(2.0**-24), 6.1e-5], np.float32)
    np.testing.assert_array_equal(_halves()(x)[0], x.astype(np.float16))


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_f64_is_rounded_once(target: str) -> None:
    """Rounded to f32 first, numbers close to a point between two results would be rounded twice."""
    to, narrow, _ = _FLOATS[target]
    unit, rng = float(ml_dtypes.finfo(narrow).eps), np.random.default_rng()
    ties = (1 + unit * (rng.integers(0, 100, 40) + 0.5)) * 2.0 ** rng.integers(-10, 10, 40)
    near = ties * (1 + rng.choice([0.0, 2.0**-40, -(2.0**-40)], 40))
    # Subnormal numbers of f16 are kept.
    small = rng.normal(size=20) * 10.0 ** rng.integers(-8, -4, 20)
    x = np.concatenate([near, -near, small, rng.normal(size=40)])
    (y,) = _compiled(TensorProto.DOUBLE, to, len(x))(x)
    np.testing.assert_array_equal(y.astype(np.float64), _rounded_once(x, narrow).astype(np.float64))


def _rounded_once(x: Array, narrow: np.dtype[Any]) -> Array:
    """Rounds to the nearest of a type's numbers, and to the even one of two. ml_dtypes rounds f64 twice."""
    first = x.astype(narrow)
    bits = first.view(np.uint16)
    candidates = np.stack([(bits + np.uint16(step)).view(narrow) for step in (0, 1, 0xFFFF)])
    with np.errstate(all="ignore"):
        away = np.abs(candidates.astype(np.float64) - x)
    odd = candidates.view(np.uint16) & 1
    best = np.lexsort((odd, np.where(np.isnan(away), np.inf, away)), axis=0)[0]
    return np.take_along_axis(candidates, best[None], axis=0)[0]
