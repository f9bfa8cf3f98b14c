"""Attention over long rows never holds all scores of a row."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
import tilewright
from attention_models import (
    PLAIN,
    Attention,
    in_blocks,
    kernels,
    leave_blockings_open,
    narrowed,
    one_right_kernel,
    rounded,
)
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads.builder import GraphBuilder

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=9)]


# With SSE4.2, two kernels are predicted to be faster, because arithmetic takes longer than the memory traffic.
@pytest.mark.cpu_levels("x86-64-avx2", "x86-64-avx512", "cpu")
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_long_rows_of_scores_are_never_held_whole(dtype: str) -> None:
    """The planner itself chooses to walk if the scores of a few queries exceed a core's cache."""
    attention = Attention(
        heads=1, key_heads=1, queries=150, keys=4099, head_size=64, value_size=64, dtype=dtype
    )
    program = one_right_kernel(attention, threads=2)
    assert "online softmax of blocks" in program.explain()


_LONG = ((2, 64, 32), (2, 4099, 32), (2, 4099, 32))


def _weighted_mean(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, bias: np.ndarray | np.float32
) -> np.ndarray:
    """Returns the weighted mean in float64; rows in which everything is masked are zero."""
    query, key, value = (array.astype(np.float64) for array in (query, key, value))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1]) + bias
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(axis=-1, keepdims=True)
    result: np.ndarray = weights @ value / np.where(total > 0, total, 1)
    return result


@pytest.mark.parametrize("batch", [1, 2])
def test_heads_laid_apart_in_other_ways_at_either_end(batch: int) -> None:
    """Batch and heads are one dim that is split at the end, or groups of heads are a dim of their own that is merged
    at the beginning."""
    together, apart = (3 * batch * 2, 37, 24), (batch, 6, 37, 24)
    g = GraphBuilder("attention")
    query, key, value = (g.input(name, apart) for name in ("query", "key", "value"))
    query, key, value = (g.op("Reshape", x, g.ints(together)) for x in (query, key, value))
    weights = g.op("Softmax", g.op("MatMul", query, g.op("Transpose", key, perm=[0, 2, 1])), axis=-1)
    g.output(g.op("Reshape", g.op("MatMul", weights, value), g.ints(apart)), apart)
    _check_ways(g.build(), [apart] * 3, group=1)

    groups = (batch, 2, 3, 37, 24)
    g = GraphBuilder("groups")
    query, key, value = (
        g.input("query", apart),
        *(g.input(name, (batch, 2, 53, 24)) for name in ("key", "value")),
    )
    key, value = (g.op("Unsqueeze", x, g.ints([2])) for x in (key, value))
    key = g.op("Transpose", key, perm=[0, 1, 2, 4, 3])
    scores = g.op("MatMul", g.op("Reshape", query, g.ints(groups)), key)
    result = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    g.output(g.op("Reshape", result, g.ints(apart)), apart)
    _check_ways(g.build(), [apart, (batch, 2, 53, 24), (batch, 2, 53, 24)], group=3)


def _check_ways(model: onnx.ModelProto, shapes: list[tuple[int, ...]], *, group: int) -> None:
    program = tilewright.compile(model, threads=[1])
    assert len(kernels(program)) == 1, kernels(program)
    rng = np.random.default_rng(11)
    query, key, value = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    scaled = query * np.float32(math.sqrt(query.shape[-1]))  # the reference divides by this
    expected = _weighted_mean(scaled, key.repeat(group, 1), value.repeat(group, 1), np.float32(0))
    np.testing.assert_allclose(program(query, key, value)[0], expected, rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_onnx_attention_walks_long_rows(*, masked: bool) -> None:
    """The definition of the op selects zero for rows that are masked completely, between the division and the second
    matmul."""
    g = GraphBuilder("attention", opset=23)
    names = [g.input(name, (1, *shape)) for name, shape in zip(("query", "key", "value"), _LONG, strict=True)]
    shape = (_LONG[0][1], _LONG[1][1])
    g.output(g.op("Attention", *names, *([g.input("mask", shape)] if masked else [])), (1, *_LONG[0]))
    program = tilewright.compile(g.build(), threads=[1])
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal((1, *each)).astype(np.float32) for each in _LONG]
    bias = np.where(masked & (rng.random(shape) > 0.6), np.float32(-np.inf), np.float32(0))
    bias[3] = -np.inf if masked else 0
    (result,) = program(*inputs, *([bias] if masked else []))
    np.testing.assert_allclose(result, _weighted_mean(*inputs, bias), rtol=1e-5, atol=2e-6)
    if (
        not masked
    ):  # the maximum of a mask has its own dim of keys, which is not walked with that of the scores
        assert len(kernels(program)) == 1, kernels(program)
        assert "online softmax of blocks" in program.explain()


def test_zeros_for_what_is_nan_walk_long_rows() -> None:
    """PyTorch's exporter to ONNX writes attention with a boolean mask like this."""
    g = GraphBuilder("attention")
    query, key, value = (
        g.input(name, shape) for name, shape in zip(("query", "key", "value"), _LONG, strict=True)
    )
    bias = g.input("bias", (_LONG[0][1], _LONG[1][1]))
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 2, 1]))
    scores = g.op("Add", g.op("Mul", scores, g.scalar(1 / math.sqrt(_LONG[0][-1]))), bias)
    weights = g.op("Softmax", scores, axis=-1)
    weights = g.op("Where", g.op("IsNaN", weights), g.scalar(0), weights)
    g.output(g.op("MatMul", weights, value), _LONG[0])
    program = tilewright.compile(g.build(), threads=[1])
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(each).astype(np.float32) for each in _LONG]
    mask = np.where(rng.random((_LONG[0][1], _LONG[1][1])) > 0.6, np.float32(-np.inf), np.float32(0))
    mask[3] = -np.inf
    (result,) = program(*inputs, mask)
    np.testing.assert_allclose(result, _weighted_mean(*inputs, mask), rtol=1e-5, atol=2e-6)
    assert not result[:, 3].any()
    assert len(kernels(program)) == 1, kernels(program)
    inputs[1][0, 7] = np.nan  # every row of one head reads it, unless it is masked for all
    result = program(*inputs, np.zeros_like(mask))[0]
    assert not result[0].any()
    assert np.isfinite(result).all()


# A product with the reciprocal of the sum is the same softmax as a division.
def test_a_softmax_with_a_reciprocal_walks_long_rows() -> None:
    g = GraphBuilder("attention", opset=13)
    query, key, value = (
        g.input(name, shape) for name, shape in zip(("query", "key", "value"), _LONG, strict=True)
    )
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 2, 1]))
    scores = g.op("Mul", scores, g.scalar(1 / math.sqrt(_LONG[0][-1])))
    weights = g.op("Exp", g.op("Sub", scores, g.op("ReduceMax", scores, axes=[-1], keepdims=1)))
    inverse = g.op("Reciprocal", g.op("ReduceSum", weights, g.ints([-1]), keepdims=1))
    g.output(g.op("MatMul", g.op("Mul", inverse, weights), value), _LONG[0])
    program = tilewright.compile(g.build(), threads=[1])
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(each).astype(np.float32) for each in _LONG]
    np.testing.assert_allclose(
        program(*inputs)[0], _weighted_mean(*inputs, np.float32(0)), rtol=1e-5, atol=2e-6
    )
    assert len(kernels(program)) == 1, kernels(program)


# An infinity or NaN in one block of keys reaches the same results as without blocks.
@pytest.mark.parametrize(
    ("where", "value"), [(0, np.inf), (1, np.nan), (2, -np.inf)], ids=["query", "key", "value"]
)
def test_what_is_no_number_crosses_blocks(where: int, value: float) -> None:
    model = PLAIN.build()
    program = in_blocks(model, PLAIN.keys, 16)
    inputs = PLAIN.inputs(program)
    inputs[where][0, 1, 20, 5] = value
    (expected,) = float64_reference(model, inputs)
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-5, atol=2e-6, equal_nan=True)


# Blocks of a plain chain need no correction by maxima.
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_chain_without_softmax_adds_up_its_blocks(dtype: str) -> None:
    g = GraphBuilder("chain")
    a, b, d = g.input("a", (37, 24)), g.input("b", (24, 53)), g.input("d", (53, 20))
    g.output(g.op("MatMul", g.op("Relu", g.op("MatMul", a, b)), d), (37, 20))
    model = narrowed(g.build(), dtype)
    plan = tilewright.compile(model, threads=[2]).plan
    (kernel,) = plan.kernels
    part = kernel.groups[0]
    part.tiles[part.extents.index(53)] = 16
    leave_blockings_open(part)
    program = tilewright.compile(model, threads=[2], plan=plan)
    rng = np.random.default_rng(3)
    inputs = [rounded(rng.standard_normal(spec.shape), dtype) for spec in program.signature.inputs]
    (expected,) = float64_reference(model, inputs)
    error = program(*inputs)[0].astype(np.float64) - expected
    unit = {"f32": 2.0**-22, "bf16": 2.0**-9}[dtype]
    assert np.linalg.norm(error) <= 2 * unit * np.linalg.norm(expected)
