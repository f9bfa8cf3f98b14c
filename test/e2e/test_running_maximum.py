"""Tests of softmax over long rows in one pass relative to a moving reference: the numbers are the graph's, in any
order of the inputs, and no byte of a binding is moved twice.

An exponential has the errors of two exponentials (under 1 ulp each) and of a product, and a quotient has two more
roundings: 1e-6 covers all of them. A sum adds up to a quarter of a row in each lane (SSE4.2 has four), and n roundings
of 6e-8 add up to about the square root of n of them. In addition, x - m is rounded in two steps: an element at distance
d from the maximum is off by d roundings, as it is in the graph.
"""

from __future__ import annotations

from typing import Any

import cpu_levels
import numpy as np
import pytest
import tilewright
from compiled import compiled

from benchmarks.workloads import stitch
from benchmarks.workloads.builder import GraphBuilder

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]

_ROWS = 5
_FEWEST_LANES = 4
_COLUMNS = (512, 1003, 5003)  # whole blocks; whole vectors and a masked remainder; many blocks
Array = np.ndarray[Any, Any]


@cpu_levels.cached
def _program(columns: int, numerics: str = "default") -> tilewright.Program:
    """Computes softmax and log-softmax of scaled scores with a mask, and log-sum-exp of the scores alone."""
    g = GraphBuilder("rows")
    x, mask = g.input("x", [_ROWS, columns]), g.input("mask", [1, columns])
    masked = g.op("Add", g.op("Mul", x, g.scalar(0.5)), mask)
    g.output(g.op("Softmax", masked, axis=-1), [_ROWS, columns])
    g.output(g.op("LogSoftmax", masked, axis=-1), [_ROWS, columns])
    largest = g.op("ReduceMax", x, axes=[-1], keepdims=1)
    total = g.op("ReduceSum", g.op("Exp", g.op("Sub", x, largest)), g.ints([-1]), keepdims=1)
    g.output(g.op("Add", largest, g.op("Log", total)), [_ROWS, 1])
    return tilewright.compile(g.build(), threads=1, numerics=numerics)


def _expected(x: Array, mask: Array) -> tuple[Array, Array, Array]:
    with np.errstate(all="ignore"):
        masked = x.astype(np.float64) * 0.5 + mask
        shifted = masked - masked.max(-1, keepdims=True)
        total = np.exp(shifted).sum(-1, keepdims=True)
        x64 = x.astype(np.float64)
        largest = x64.max(-1, keepdims=True)
        sum_exp = np.exp(x64 - largest).sum(-1, keepdims=True)
        return np.exp(shifted) / total, shifted - np.log(total), largest + np.log(sum_exp)


def _check(program: tilewright.Program, x: Array, mask: Array | None = None) -> None:
    mask = np.zeros((1, x.shape[1]), np.float32) if mask is None else mask
    softmax, log_softmax, log_sum = program(x, mask)
    expected = _expected(x, mask)
    np.testing.assert_array_equal(np.isnan(softmax), np.isnan(expected[0]))
    distance = np.nan_to_num(np.abs(expected[1]), posinf=0)
    error = np.nan_to_num(np.abs(softmax - expected[0]))
    summing = 6e-8 * np.sqrt(x.shape[1] / _FEWEST_LANES)
    assert np.all(error <= np.nan_to_num(expected[0]) * (1e-6 + summing + 1.2e-7 * distance) + 1e-34)
    scale = np.nanmax(np.where(np.isfinite(expected[1]), np.abs(expected[1]), 1))
    np.testing.assert_allclose(log_softmax, expected[1], rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(log_sum, expected[2], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("columns", _COLUMNS)
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "steps", "equal"])
def test_any_order_gives_the_right_numbers(columns: int, order: str) -> None:
    x = (np.random.default_rng(columns).standard_normal((_ROWS, columns)) * 20).astype(np.float32)
    if order == "ascending":  # the reference moves again and again
        x.sort(axis=-1)
    elif order == "descending":
        x = -np.sort(-x, axis=-1)
    elif order == "steps":  # each step is just within or just beyond the distance that moves the reference
        x = (np.arange(columns) // 16 * 8.0).astype(np.float32) + x / 40
        x = np.minimum(x, 90.0)
    elif order == "equal":
        x[:] = -3.5
    _check(_program(columns), x)


@pytest.mark.parametrize("columns", _COLUMNS)
def test_masked_columns_count_for_nothing(columns: int) -> None:
    program = _program(columns)
    x = np.random.default_rng(1).standard_normal((_ROWS, columns)).astype(np.float32)
    for low in (-np.inf, np.finfo(np.float32).min):
        for hidden in (slice(0, 300), slice(columns - 70, columns), slice(0, columns - 1), slice(1, columns)):
            mask = np.zeros((1, columns), np.float32)
            mask[:, hidden] = low
            _check(program, x, mask)
        _check(program, x, np.full((1, columns), low, np.float32))


@pytest.mark.parametrize("columns", _COLUMNS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_special_values_stay_in_their_row(columns: int, value: float) -> None:
    x = np.random.default_rng(2).standard_normal((_ROWS, columns)).astype(np.float32)
    x[1, 0] = x[2, columns - 1] = x[3, columns // 2] = value
    _check(_program(columns), x)


def test_the_other_algebra_is_declared_and_strictly_not_used() -> None:
    clause = "online softmax instead of the model's algebra"
    assert clause in _program(1003).explain()
    assert clause not in _program(1003, "strict").explain()


def test_short_rows_keep_the_algebra_of_the_graph() -> None:
    assert "online softmax" not in tilewright.compile(stitch.softmax((9, 21)), threads=1).explain()


@pytest.mark.parametrize("model", [stitch.softmax, stitch.log_softmax])
def test_each_byte_moves_once(model: Any) -> None:
    shape = (3, 5003)
    with compiled(model(shape)) as result:
        (traffic,) = result.traffic()
    assert traffic.loaded + traffic.stored <= 1.05 * 2 * 4 * np.prod(shape)
