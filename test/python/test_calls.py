"""Calls of compiled programs: types, shapes, strides, and who owns the results."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper

Array = np.ndarray[Any, Any]


ELEMENT_TYPES = [
    (TensorProto.FLOAT, np.dtype(np.float32)),
    (TensorProto.FLOAT16, np.dtype(np.float16)),
    (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
    (TensorProto.DOUBLE, np.dtype(np.float64)),
    (TensorProto.INT8, np.dtype(np.int8)),
    (TensorProto.UINT8, np.dtype(np.uint8)),
    (TensorProto.INT32, np.dtype(np.int32)),
    (TensorProto.INT64, np.dtype(np.int64)),
]


@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize(("element", "dtype"), ELEMENT_TYPES, ids=lambda v: getattr(v, "name", None))
def test_arrays_keep_their_dtype(element: int, dtype: np.dtype[Any]) -> None:
    node = helper.make_node("Add", ["a", "b"], ["c"])
    model = make_model(
        [node], [value("a", [3, 5], element), value("b", [5], element)], [value("c", [3, 5], element)]
    )
    a = np.arange(15).reshape(3, 5).astype(dtype)
    b = np.arange(5).astype(dtype)
    (c,) = tilewright.compile(model, threads=1)(a, b)
    assert c.dtype == dtype
    np.testing.assert_array_equal(c.astype(np.float64), (a + b).astype(np.float64))


def test_booleans_go_in_and_come_out() -> None:
    node = helper.make_node("Not", ["a"], ["b"])
    model = make_model([node], [value("a", [3, 5], TensorProto.BOOL)], [value("b", [3, 5], TensorProto.BOOL)])
    a = np.random.default_rng(0).random((3, 5)) < 0.5
    (b,) = tilewright.compile(model, threads=1)(a)
    assert b.dtype == np.bool_
    np.testing.assert_array_equal(b, ~a)


def test_named_dims_take_any_size_but_the_same() -> None:
    node = helper.make_node("Add", ["a", "b"], ["c"])
    model = make_model([node], [value("a", ["n", 3]), value("b", ["n", 3])], [value("c", ["n", 3])])
    program = tilewright.compile(model, threads=1)
    for n in (1, 4):
        a = np.full((n, 3), 2, np.float32)
        np.testing.assert_array_equal(program(a, a)[0], a + a)
    with pytest.raises(tilewright.InputError, match=r"'n'.*is 4, but it is 2 in input 'a'"):
        program(np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32))


def test_arrays_of_no_elements_work() -> None:
    node = helper.make_node("Relu", ["a"], ["b"])
    model = make_model([node], [value("a", ["n", 3])], [value("b", ["n", 3])])
    (b,) = tilewright.compile(model, threads=1)(np.zeros((0, 3), np.float32))
    assert b.shape == (0, 3)


def test_arrays_need_not_be_contiguous(program: tilewright.Program, x: Array, expected: list[Array]) -> None:
    transposed = np.ascontiguousarray(x.T).T
    np.testing.assert_allclose(program(transposed)[0], expected[0], rtol=1e-5, atol=1e-6)


def test_a_bound_call_runs_again_on_the_same_inputs(
    program: tilewright.Program, x: Array, expected: list[Array]
) -> None:
    call = program.bind(x)
    call()
    first = call.outputs()
    call()
    for y, again, y64 in zip(first, call.outputs(), expected, strict=True):
        np.testing.assert_array_equal(y, again)
        np.testing.assert_allclose(y, y64, rtol=1e-5, atol=1e-6)


def test_outputs_belong_to_the_caller(program: tilewright.Program, x: Array) -> None:
    first = program(x)[0]
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(program(x)[0], kept)
