"""Sorts as JAX writes them: equal elements keep their order, whatever the comparison, and top_k has XLA's order."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright

_BY_TWO_KEYS = """
func.func @main(%first: tensor<5x33xi32>, %second: tensor<5x33xi32>) -> tensor<5x33xi32> {
  %at = stablehlo.iota dim = 1 : tensor<5x33xi32>
  %sorted:3 = "stablehlo.sort"(%first, %second, %at) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>, %e: tensor<i32>, %f: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %equal = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %next = stablehlo.compare LT, %c, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %both = stablehlo.and %equal, %next : tensor<i1>
    %any = stablehlo.or %less, %both : tensor<i1>
    stablehlo.return %any : tensor<i1>
  }) : (tensor<5x33xi32>, tensor<5x33xi32>, tensor<5x33xi32>) -> (tensor<5x33xi32>, tensor<5x33xi32>, tensor<5x33xi32>)
  return %sorted#2 : tensor<5x33xi32>
}
"""
"""jax.numpy.lexsort((second, first))"""

_OF_FLOATS = """
func.func @main(%x: tensor<5x33xf32>) -> tensor<5x33xi32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  %at = stablehlo.iota dim = 1 : tensor<5x33xi32>
  %sorted:2 = "stablehlo.sort"(%x, %at) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %0 = stablehlo.compare EQ, %a, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = stablehlo.select %0, %zero, %a : tensor<i1>, tensor<f32>
    %2 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.select %2, %nan, %1 : tensor<i1>, tensor<f32>
    %4 = stablehlo.compare EQ, %b, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.select %4, %zero, %b : tensor<i1>, tensor<f32>
    %6 = stablehlo.compare NE, %b, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %7 = stablehlo.select %6, %nan, %5 : tensor<i1>, tensor<f32>
    %8 = stablehlo.compare LT, %3, %7, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %8 : tensor<i1>
  }) : (tensor<5x33xf32>, tensor<5x33xi32>) -> (tensor<5x33xf32>, tensor<5x33xi32>)
  return %sorted#1 : tensor<5x33xi32>
}
"""
"""jax.numpy.argsort(x)"""

_TOP = """
func.func @main(%x: tensor<2x7xf32>) -> (tensor<2x5xf32>, tensor<2x5xi32>) {
  %values, %at = chlo.top_k(%x, k = 5) : tensor<2x7xf32> -> (tensor<2x5xf32>, tensor<2x5xi32>)
  return %values, %at : tensor<2x5xf32>, tensor<2x5xi32>
}
"""
"""jax.lax.top_k(x, 5)"""


@pytest.mark.parametrize("compared", ["LT", "LE"])
def test_equal_keys_keep_their_order(compared: str) -> None:
    """A comparison may be true of equal elements."""
    text = _BY_TWO_KEYS.replace("compare LT, %c", f"compare {compared}, %c")
    program = tilewright.compile(text, threads=1)
    rng = np.random.default_rng()
    first, second = (rng.integers(-3, 4, (5, 33), dtype=np.int32) for _ in range(2))
    (order,) = program(first, second)
    np.testing.assert_array_equal(order, np.lexsort((second, first), axis=1))
    assert program.kernels


def test_floats_keep_the_order_of_equal_ones() -> None:
    """Both zeros are equal, and all NaNs, which come last."""
    program = tilewright.compile(_OF_FLOATS, threads=1)
    x = (np.random.default_rng().integers(-3, 4, (5, 33)) * np.float32(0.5)).astype(np.float32)
    x[0, :9:2] = -0.0
    x[1, 4:8] = np.nan, -np.inf, -np.nan, np.inf
    np.testing.assert_array_equal(program(x)[0], np.argsort(x, axis=1, kind="stable"))
    assert program.kernels


def test_top_k_has_the_order_of_xla() -> None:
    """It orders floats by sign and magnitude, so that 0 comes before -0, and a negative NaN last."""
    program = tilewright.compile(_TOP, threads=1)
    x = np.array([[1, -0.0, 0, -0.0, 2, 2, -1], [np.nan, 1, np.inf, -np.nan, np.nan, 0, 3]], np.float32)
    values, at = program(x)
    np.testing.assert_array_equal(at, [[4, 5, 0, 2, 1], [0, 4, 2, 6, 1]])
    np.testing.assert_array_equal(values, np.take_along_axis(x, at.astype(np.int64), 1))
    assert program.kernels
