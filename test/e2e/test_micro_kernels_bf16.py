"""Contractions in bf16, on every micro kernel that this machine runs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tilewright
from micro_kernel_cases import TARGETS, check_ours, skip_unless_here
from one_graph import one_graph
from onnx import TensorProto, helper

Array = np.ndarray


_BF16_STEP = 2.0**-8  # half of a unit in the last place


def _matmul(
    left: Array,
    right: Array,
    target: str = "cpu",
    *,
    weight: bool,
    numerics: tilewright.records.options.NumericsMode = "default",
) -> tuple[Array, tilewright.Program]:
    inputs, constants = {"a": left}, {}
    (constants if weight else inputs)["b"] = right
    shape = np.matmul(left.astype(np.float32), right.astype(np.float32)).shape
    model = one_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])], inputs, constants, (TensorProto.BFLOAT16, shape)
    )
    program = tilewright.compile(model, target, threads=1, numerics=numerics, tuning=False)
    return program(*inputs.values())[0], program


def _bf16(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


def _assert_rounded_once(got: Array, left: Array, right: Array) -> None:
    exact = left.astype(np.float64) @ right.astype(np.float64)
    terms = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64))
    error = np.abs(got.astype(np.float64) - exact)
    # The result has one rounding, and each of its terms one of f32.
    assert (error <= np.abs(exact) * _BF16_STEP + terms * left.shape[-1] * 2.0**-23 + 1e-37).all()


@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(1, 1, 2), (7, 2, 65), (5, 65, 17), (131, 193, 96)],
)
def test_bf16_of_odd_sizes(rows: int, depth: int, columns: int, *, weight: bool) -> None:
    rng = np.random.default_rng(3)
    left, right = _bf16(rng, rows, depth), _bf16(rng, depth, columns)
    got, program = _matmul(left, right, weight=weight)
    check_ours(program)
    _assert_rounded_once(got, left, right)


@pytest.mark.parametrize("target", TARGETS)
def test_bf16_on_every_target(target: str) -> None:
    """The first of several targets determines how weights are packed; the others must find their operands in that
    layout."""
    skip_unless_here(target)
    rng = np.random.default_rng(4)
    left, right = _bf16(rng, 13, 67), _bf16(rng, 67, 75)
    got, program = _matmul(left, right, target, weight=True)
    check_ours(program)
    _assert_rounded_once(got, left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 9, 21), (3, 21, 70)), ((2, 3, 9, 20), (3, 20, 70)), ((21,), (21, 70)), ((3, 9, 21), (21, 70))],
    ids=str,
)
@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
def test_bf16_batches_and_vectors(left: tuple[int, ...], right: tuple[int, ...], *, weight: bool) -> None:
    rng = np.random.default_rng(5)
    a, b = _bf16(rng, *left), _bf16(rng, *right)
    got, _ = _matmul(a, b, weight=weight)
    _assert_rounded_once(got, a, b)


def test_bf16_infinities_and_nan_stay_in_their_rows() -> None:
    """The padding of the last K step, and of the last panel's columns, is zero on both sides."""
    left, right = np.ones((9, 21), ml_dtypes.bfloat16), np.ones((21, 70), ml_dtypes.bfloat16)
    left[3, 20], left[6, 0] = np.inf, np.nan
    got, _ = _matmul(left, right, weight=True)
    assert (np.delete(got, [3, 6], axis=0) == 21).all()
    assert np.isposinf(got[3].astype(np.float32)).all()
    assert np.isnan(got[6].astype(np.float32)).all()


def test_strict_numerics_take_no_kernel_that_flushes() -> None:
    """A subnormal number times a large one is normal, but VDPBF16PS would flush it to zero."""
    left, right = np.full((3, 4), 1e-39, ml_dtypes.bfloat16), np.full((4, 33), 1e38, ml_dtypes.bfloat16)
    _, program = _matmul(left, right, weight=False, numerics="strict")
    names = [op.micro_kernel for kernel in program.kernels for op in kernel.ops if op.micro_kernel]
    assert names
    assert not any(name.startswith("dpbf16") for name in names)


def test_the_plan_names_the_kernel_of_the_target() -> None:
    rng = np.random.default_rng(6)
    left, right = _bf16(rng, 9, 20), _bf16(rng, 20, 70)
    for target, name in (("x86-64-avx512bf16", "dpbf16-6x4"), ("x86-64-avx2", "fma_pairs-6x2")):
        inputs, shape = {"a": left}, (9, 70)
        node = helper.make_node("MatMul", ["a", "b"], ["y"])
        model = one_graph([node], inputs, {"b": right}, (TensorProto.BFLOAT16, shape))
        program = tilewright.compile(model, target, threads=1, tuning=False)
        (kernel,) = program.kernels
        assert [op.micro_kernel for op in kernel.ops if op.micro_kernel] == [name]
        assert f"micro kernel {name}" in program.explain()
