"""Tests of tensors that are computed from indices alone: in kernels without operands, or once at load."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from compiled import compiled

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.cpu_levels

_SIZE = 53


def _mask_of_ranges(*, returned: bool) -> GraphBuilder:
    """Builds x + mask + the maxima of its rows; the mask compares two ranges whose ends are the sizes of x."""
    g = GraphBuilder("ranges")
    x = g.input("x", (_SIZE, _SIZE))
    zero, one, first = (g.constant(np.array(n)) for n in (0, 1, -20))
    rows, columns = (g.op("Gather", g.op("Shape", x), g.constant(np.array(axis))) for axis in (0, 1))
    row = g.op("Range", zero, rows, one)
    column = g.op("Range", first, g.op("Add", columns, first), one)
    less = g.op("Less", g.op("Unsqueeze", row, g.ints([1])), g.op("Unsqueeze", column, g.ints([0])))
    mask = g.op("Cast", less, to=1)
    largest = g.op("ReduceMax", mask, axes=[1], keepdims=1)
    g.output(g.op("Add", g.op("Add", x, largest), mask), (_SIZE, _SIZE))
    if returned:
        g.output(g.op("Cast", row, to=1), (_SIZE,))
        g.output(g.op("Cast", column, to=1), (_SIZE,))
    return g


def _expected() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    row, column = np.arange(_SIZE), np.arange(_SIZE) - 20
    mask = (row[:, None] < column).astype(np.float32)
    return mask + mask.max(axis=1, keepdims=True), row, column


def test_two_results_of_a_kernel_without_operands_are_told_apart() -> None:
    """IREE clones such dispatches for readers of a copied result, and would give each of them the first result."""
    program = tilewright.compile(_mask_of_ranges(returned=True).build(), threads=[1], strict=True)
    for result, expected in zip(program(np.zeros((_SIZE, _SIZE), np.float32)), _expected(), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_a_mask_of_indices_is_computed_at_load() -> None:
    with compiled(_mask_of_ranges(returned=False).build()) as made:
        assert made.launches().dispatches == 1
        (result,) = made.program(np.zeros((_SIZE, _SIZE), np.float32))
        np.testing.assert_array_equal(result, _expected()[0])
