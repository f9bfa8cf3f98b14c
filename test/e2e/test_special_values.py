"""Tests that our kernels treat infinities, NaN, zeros and numbers at the ends of the range as numpy does.

Denormal numbers are excluded: IREE's runtime makes the processor treat them as zero.
"""

from __future__ import annotations

import cpu_levels
import numpy as np
import pytest
import tilewright
from onnx import TensorProto

from benchmarks.workloads.builder import GraphBuilder

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]

_ROWS, _COLUMNS = 9, 77  # whole vectors and a tail
_F32 = np.finfo(np.float32)
_SCALES = (0.0, -0.0, 1.2e-38, 1e-30, 0.7, 3.0, 1e31, 8.6e37, 3.4e38, np.inf, -np.inf, np.nan)


@cpu_levels.cached
def _extremum(op: str) -> tilewright.Program:
    g = GraphBuilder(op.lower())
    x = g.input("x", [_ROWS, _COLUMNS])
    g.output(g.op(op, x, axes=[-1], keepdims=1), [_ROWS, 1])
    g.output(g.op(op, x, axes=[0], keepdims=1), [1, _COLUMNS])
    return tilewright.compile(g.build(), threads=1)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 31, 63, 64, _COLUMNS - 1])
def test_one_special_value_decides_an_extremum(op: str, value: float, column: int) -> None:
    x = np.random.default_rng(column).standard_normal((_ROWS, _COLUMNS)).astype(np.float32)
    x[4, column] = value
    rows, columns = _extremum(op)(x)
    reduce = np.max if op == "ReduceMax" else np.min
    np.testing.assert_array_equal(rows, reduce(x, axis=-1, keepdims=True))
    np.testing.assert_array_equal(columns, reduce(x, axis=0, keepdims=True))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_rows_of_infinities_have_extrema(value: float) -> None:
    x = np.full((_ROWS, _COLUMNS), value, np.float32)
    for op in ("ReduceMax", "ReduceMin"):
        for y in _extremum(op)(x):
            np.testing.assert_array_equal(y, np.full_like(y, value))


def test_a_row_divided_by_any_number_is_right_to_an_ulp() -> None:
    g = GraphBuilder("divide")
    rows = len(_SCALES)
    x, d = g.input("x", [rows, 96]), g.input("d", [rows, 1])
    g.output(g.op("Div", x, d), [rows, 96])
    numerators = np.concatenate(
        [np.random.default_rng(0).standard_normal(81), _SCALES, [_F32.tiny, _F32.max, -_F32.max]]
    )
    values = np.tile(numerators.astype(np.float32), (rows, 1))
    divisors = np.array(_SCALES, np.float32).reshape(rows, 1)
    (y,) = tilewright.compile(g.build(), threads=1)(values, divisors)
    with np.errstate(all="ignore"):
        exact = values.astype(np.float64) / divisors.astype(np.float64)
        expected = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(expected))
    finite = np.isfinite(expected) & (np.abs(expected) >= _F32.tiny)
    ulp = np.spacing(np.abs(expected[finite])).astype(np.float64)
    assert np.max(np.abs(y[finite].astype(np.float64) - exact[finite]) / ulp) <= 1.5


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_first_of_equal_elements_is_found(op: str, axis: int) -> None:
    g = GraphBuilder(op.lower())
    x = g.input("x", [_ROWS, _COLUMNS])
    length = _COLUMNS if axis == 0 else _ROWS
    g.output(g.op(op, x, axis=axis, keepdims=0), [length], TensorProto.INT64)
    program = tilewright.compile(g.build(), threads=1)
    assert not program.metadata.report.left_to_iree
    find = np.argmax if op == "ArgMax" else np.argmin
    values = np.random.default_rng(1).integers(-3, 4, (_ROWS, _COLUMNS)).astype(np.float32)
    np.testing.assert_array_equal(program(values)[0], find(values, axis=axis))
    for value in (np.inf, -np.inf, np.nan):  # a search never finds NaN; if it finds nothing, the index is 0
        np.testing.assert_array_equal(program(np.full_like(values, value))[0], np.zeros(length))


def test_factors_beside_a_tanh_do_not_overflow() -> None:
    """The factor of 1 + tanh, and constants beside it, are near the end of the range."""
    g = GraphBuilder("factors")
    x, y = g.input("x", [_COLUMNS]), g.input("y", [_COLUMNS])
    bell = g.op("Add", g.op("Tanh", y), g.scalar(1.0))
    steep = g.op("Add", g.op("Tanh", g.op("Mul", y, g.scalar(3e38))), g.scalar(1.0))
    for factor in (x, g.op("Mul", x, g.scalar(3e38)), g.op("Mul", x, g.scalar(0.5))):
        g.output(g.op("Mul", factor, bell), [_COLUMNS])
    g.output(steep, [_COLUMNS])
    values = np.resize(np.float32([0.0, 1e-30, 1.0, -1.0, -1.7e38, 3e38, _F32.min]), _COLUMNS)
    for shift in (np.float32([0.0]), np.float32([0.5, -0.5, -20.0])):
        z = np.resize(shift, _COLUMNS)
        actual = tilewright.compile(g.build(), threads=1)(values, z)
        wide, wide_z = values.astype(np.float64), z.astype(np.float64)
        expected = [wide * f / (0.5 + 0.5 * np.exp(-2 * wide_z)) for f in (1.0, 3e38, 0.5)]
        expected.append(2 / (1 + np.exp(np.clip(-6e38 * wide_z, -700, 700))))
        for ours, exact in zip(actual, expected, strict=True):
            with np.errstate(over="ignore", under="ignore"):
                np.testing.assert_allclose(ours, exact.astype(np.float32), rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("to", [TensorProto.BFLOAT16, TensorProto.FLOAT16])
def test_doubles_are_narrowed_by_the_compiler_behind_us(to: int) -> None:
    g = GraphBuilder("narrowed")
    x = g.input("x", [_COLUMNS], TensorProto.DOUBLE)
    g.output(g.op("Cast", g.op("Abs", x), to=to), [_COLUMNS], to)
    x64 = np.linspace(-3, 3, _COLUMNS)
    (actual,) = tilewright.compile(g.build(), threads=1)(x64)
    np.testing.assert_allclose(actual.astype(np.float64), np.abs(x64), rtol=2.0**-8)


_ROUND = """
#id = affine_map<(i) -> (i)>
func.func @round(%x: tensor<SIZExTYPE>) -> tensor<SIZExTYPE> {
  %e = tensor.empty() : tensor<SIZExTYPE>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<SIZExTYPE>) outs(%e : tensor<SIZExTYPE>) {
  ^bb0(%v: TYPE, %o: TYPE):
    %r = math.round %v : TYPE
    linalg.yield %r : TYPE
  } -> tensor<SIZExTYPE>
  return %y : tensor<SIZExTYPE>
}
"""


@pytest.mark.parametrize(("name", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_halves_are_rounded_away_from_zero(name: str, dtype: type) -> None:
    below = np.nextafter(dtype(0.5), dtype(0))
    odd = 1 / np.finfo(dtype).eps + 1
    x = np.array([0.0, 0.3, below, 0.5, 1.5, 2.5, 2.7, odd / 2, odd, np.inf], dtype)
    expected = np.array([0, 0, 0, 1, 2, 3, 3, np.ceil(odd / 2), odd, np.inf], dtype)
    both = np.concatenate([x, -x, [dtype(np.nan)]])
    text = _ROUND.replace("SIZE", str(both.size)).replace("TYPE", name)
    (y,) = tilewright.compile(text, threads=1, strict=True)(both)
    np.testing.assert_array_equal(y, np.concatenate([expected, -expected, [dtype(np.nan)]]))
    assert np.array_equal(np.signbit(y[:-1]), np.signbit(both[:-1]))
