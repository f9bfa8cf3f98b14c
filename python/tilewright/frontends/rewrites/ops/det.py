"""Determinants, by Gaussian elimination with pivots."""

from __future__ import annotations

import numpy as np

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.rule import Operation, Rule

MOST_ROWS_OF_DET = 16
"""Most rows of the matrix of a Det, because the elimination is unrolled over its rows."""


def _eliminate_rows(operation: Operation) -> bool:
    """Makes a Gaussian elimination with partial pivoting: each step swaps the row of a column's largest element with
    the first row, then removes the first row and column."""
    *_, rows, _ = operation.shape(0)
    if not 0 < rows <= MOST_ROWS_OF_DET:
        raise ModelError(
            f"Det of matrices of {rows if rows >= 0 else 'an unknown number of'} rows is not supported, as IREE's "
            f"importer finds it without pivots; at most {MOST_ROWS_OF_DET} are",
            where=f"'{operation.name}'",
            hint="factor the matrix in the model",
        )
    dtype, left = operation.dtype(0), operation.inputs[0]
    zero, one, minus = (operation.constant(np.array(number, dtype)) for number in (0, 1, -1))
    rank = len(operation.shape(0))

    def part(value: str, axis: int, begin: int, end: int) -> str:
        bounds = ([begin], [end], [rank + axis])
        return operation.make("Slice", value, *(operation.constant(np.array(b, np.int64)) for b in bounds))

    products: list[str] = []
    for count in range(rows, 1, -1):
        column = part(left, -1, 0, 1)
        index = operation.make("ArgMax", operation.make("Abs", column), axis=rank - 2, keepdims=1)
        numbers = operation.constant(np.arange(count, dtype=np.int64).reshape(count, 1))
        is_pivot = operation.make("Equal", index, numbers)
        chosen = operation.make("Where", is_pivot, left, zero)
        axes = operation.constant(np.array([rank - 2], np.int64))
        pivot_row = operation.make("ReduceSum", chosen, axes, keepdims=1)
        pivot = part(pivot_row, -1, 0, 1)
        is_first = operation.make("Equal", index, operation.constant(np.array(0, np.int64)))
        products.append(operation.make("Mul", pivot, operation.make("Where", is_first, one, minus)))
        swapped = operation.make("Where", is_pivot, part(left, -2, 0, 1), left)
        below, right = part(part(swapped, -2, 1, count), -1, 1, count), part(pivot_row, -1, 1, count)
        # A column of zeros gives a determinant of zero, whatever the other columns hold.
        divisor = operation.make("Where", operation.make("Equal", pivot, zero), one, pivot)
        factors = operation.make("Div", part(part(swapped, -2, 1, count), -1, 0, 1), divisor)
        left = operation.make("Sub", below, operation.make("Mul", factors, right))
    for product in products:
        left = operation.make("Mul", left, product)
    axes = operation.constant(np.array([rank - 2, rank - 1], np.int64))
    operation.finish("Squeeze", left, axes)
    return True


RULES = (Rule("Det", _eliminate_rows, "IREE swaps no rows, so that it divides by zero for some matrices"),)
