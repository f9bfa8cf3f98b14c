"""Tests of sorted rows (TopK): in our kernels, stable, and in the order of all values, NaN and both zeros included."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from onnx import TensorProto
from sort_models import SORTED_TYPES, first_of_sorted, repeated_values, top_model
from tilewright.reference.oracle import Array

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=4)]


def _check(x: Array, kept: int, *, axis: int = -1, largest: bool = True, element: int) -> None:
    model = top_model(x.shape, kept, axis=axis, largest=largest, element=element)
    program = tilewright.compile(model, threads=[2])
    assert program.runtime == "direct", "IREE sorts"
    values, indices = program(x)
    expected_values, expected_indices = first_of_sorted(x, kept, axis, largest=largest)
    np.testing.assert_array_equal(indices, expected_indices)
    assert values.tobytes() == expected_values.tobytes()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("element", SORTED_TYPES)
def test_equal_elements_keep_their_order(element: int, *, largest: bool) -> None:
    _check(repeated_values((3, 29), SORTED_TYPES[element]), 7, largest=largest, element=element)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_dim_is_sorted(axis: int) -> None:
    _check(
        repeated_values((9, 6, 11), SORTED_TYPES[TensorProto.FLOAT]), 5, axis=axis, element=TensorProto.FLOAT
    )


@pytest.mark.parametrize("shape", [(1, 2), (2, 17), (1, 130)])
def test_whole_rows_are_sorted(shape: tuple[int, int]) -> None:
    _check(repeated_values(shape, SORTED_TYPES[TensorProto.INT32]), shape[1], element=TensorProto.INT32)


@pytest.mark.parametrize(("length", "kept"), [(1000, 5), (1023, 64), (5000, 3), (2048, 1)])
@pytest.mark.parametrize("largest", [True, False])
def test_long_rows_are_sorted_in_blocks(length: int, kept: int, *, largest: bool) -> None:
    _check(
        repeated_values((2, length), SORTED_TYPES[TensorProto.FLOAT]),
        kept,
        largest=largest,
        element=TensorProto.FLOAT,
    )


@pytest.mark.parametrize("largest", [True, False])
def test_the_least_number_is_in_front_of_what_fills_a_block(*, largest: bool) -> None:
    x = np.full((1, 1000), np.iinfo(np.int32).min if largest else np.iinfo(np.int32).max, np.int32)
    _check(x, 40, largest=largest, element=TensorProto.INT32)


@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE])
@pytest.mark.parametrize("largest", [True, False])
def test_special_values_have_a_place(element: int, *, largest: bool) -> None:
    dtype = SORTED_TYPES[element]
    tiny = np.finfo(dtype).smallest_subnormal
    row = [0.0, np.nan, -0.0, np.inf, -tiny, -np.nan, 1.0, -np.inf, tiny, 0.0, -1.0, np.nan]
    _check(np.array([row], dtype), len(row), largest=largest, element=element)
