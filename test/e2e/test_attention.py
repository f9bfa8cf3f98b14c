"""Tests of attention written with plain operators in many ways: it is one kernel, whose scores are never in global
memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from one_graph import one_graph
from onnx import TensorProto, helper, numpy_helper
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads.builder import GraphBuilder, repeat_heads, split_heads
from benchmarks.workloads.narrow import to_narrow

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=5)]


def narrowed(model: onnx.ModelProto, dtype: str) -> onnx.ModelProto:
    """Returns the model with `dtype` in place of every float32."""
    if dtype == "bf16":
        return to_narrow(model, "bf16")
    if dtype == "f16":
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT:
                array = rounded(numpy_helper.to_array(tensor), dtype)
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        for value in (*model.graph.input, *model.graph.output):
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """Returns the array as `dtype`; its lowest number replaces finite numbers that are lower."""
    types: dict[str, tuple[Any, float]] = {
        "f32": (np.float32, _LOWEST),
        "bf16": (ml_dtypes.bfloat16, float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)),
        "f16": (np.float16, float(np.finfo(np.float16).min)),
    }
    kind, lowest = types[dtype]
    return np.where(np.isfinite(array), np.maximum(array, np.float32(lowest)), array).astype(kind)


_LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, kw_only=True)
class Attention:
    """A model of softmax(query @ keyᵀ · scale + mask) @ value, in one of the forms in which models write it."""

    heads: int = 3
    key_heads: int = 3
    queries: int = 37
    keys: int = 53
    head_size: int = 24
    value_size: int = 20
    mask: str = "none"
    """none, causal, infinite (causal, and the first rows have no keys), before (causal, written with indices), keys
    (hides some keys from all queries), rows (hides all keys from one query)"""
    scale: str = "scores"
    """operand that is scaled: the scores or the query"""
    transposed_key: bool = False
    """True if the key comes as [head size, keys]"""
    dtype: str = "f32"
    """f32, bf16 or f16"""
    heads_inside: bool = False
    """True if inputs are [sequence, heads · size], as from a projection, and are split in the model"""
    four: bool = True
    """True for [batch, heads, …], False for [heads, …]"""
    batch: int = 1

    def build(self) -> onnx.ModelProto:
        g = GraphBuilder("attention")
        query = self._heads(g, "query", self.heads, self.queries, self.head_size)
        if self.transposed_key:
            key = g.input("key", (*self._lead(self.key_heads), self.head_size, self.keys))
        else:
            key = self._heads(g, "key", self.key_heads, self.keys, self.head_size)
            key = self._repeated(g, key, self.head_size)
            axes = [*range(len(self._lead(1)))]
            key = g.op("Transpose", key, perm=[*axes, len(axes) + 1, len(axes)])
        value = self._heads(g, "value", self.key_heads, self.keys, self.value_size)
        value = self._repeated(g, value, self.value_size)
        factor = g.scalar(1 / math.sqrt(self.head_size))
        if self.scale == "query":
            query = g.op("Mul", query, factor)
        scores = g.op("MatMul", query, key)
        if self.scale == "scores":
            scores = g.op("Mul", scores, factor)
        scores = self._masked(g, scores)
        result = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
        g.output(result, (*self._lead(self.heads), self.queries, self.value_size))
        return narrowed(g.build(), self.dtype)

    def _lead(self, heads: int) -> tuple[int, ...]:
        return (self.batch, heads) if self.four else (heads,)

    def _heads(self, g: GraphBuilder, name: str, heads: int, rows: int, size: int) -> str:
        if not self.heads_inside:
            return g.input(name, (*self._lead(heads), rows, size))
        x = g.input(name, (self.batch, rows, heads * size))
        return split_heads(g, x, batch=self.batch, sequence=rows, heads=heads, head_size=size)

    def _repeated(self, g: GraphBuilder, x: str, size: int) -> str:
        shape = (self.batch, self.key_heads, self.keys, size)
        return repeat_heads(g, x, shape=shape, group=self.heads // self.key_heads)

    def _masked(self, g: GraphBuilder, scores: str) -> str:
        if self.mask == "causal":
            above = np.triu(np.full((self.queries, self.keys), _LOWEST, dtype=np.float32), k=1)
            return g.op("Add", scores, g.constant(above, "above"))
        if self.mask == "infinite":
            above = np.triu(np.full((self.queries, self.keys), -np.inf, dtype=np.float32), k=-3)
            return g.op("Add", scores, g.constant(above, "above"))
        if self.mask == "before":
            first, end, more, one = (
                g.constant(np.array(n)) for n in (0, self.keys, self.keys - self.queries, 1)
            )
            key, last = g.op("Range", first, end, one), g.op("Range", more, end, one)
            last = g.op("Unsqueeze", last, g.ints([1]))
            return g.op("Where", g.op("LessOrEqual", key, last), scores, g.scalar(-np.inf))
        if self.mask == "keys":
            return g.op("Add", scores, g.input("mask", (1, 1, 1, self.keys)))
        if self.mask == "rows":
            return g.op("Add", scores, g.input("mask", (1, 1, self.queries, self.keys)))
        return scores

    def inputs(self, program: tilewright.Program) -> list[np.ndarray]:
        rng = np.random.default_rng(5)
        made = [rng.standard_normal(spec.shape).astype(np.float32) for spec in program.signature.inputs]
        if self.mask == "keys":
            made[-1] = np.where(made[-1] > 0, np.float32(_LOWEST), np.float32(0))
        if self.mask == "rows":
            made[-1] = np.where(made[-1] > 0, np.float32(-np.inf), np.float32(0))
            made[-1][..., 2, :] = -np.inf
        return [rounded(array, self.dtype) for array in made]


_PLAIN = Attention()
_WAYS = {
    "plain": _PLAIN,
    "three dims": replace(_PLAIN, four=False),
    "scaled query": replace(_PLAIN, scale="query"),
    "transposed key": replace(_PLAIN, transposed_key=True),
    "split heads": replace(_PLAIN, heads_inside=True),
    "causal": replace(_PLAIN, mask="causal", queries=53),
    "masked keys": replace(_PLAIN, mask="keys"),
    "batch": replace(_PLAIN, batch=2, mask="keys", queries=64, keys=64),
    "batch of split heads": replace(_PLAIN, batch=2, heads_inside=True, queries=64, keys=64),
    "batch, grouped": replace(_PLAIN, batch=2, heads=6, key_heads=2, queries=64, keys=64),
    "grouped": replace(_PLAIN, heads=6, key_heads=2),
    "one key head": replace(_PLAIN, heads=4, key_heads=1),
    "few queries": replace(_PLAIN, queries=2, keys=130),
    "whole register blocks": replace(_PLAIN, queries=96, keys=128, head_size=64, value_size=64),
    "values wider than keys": replace(_PLAIN, keys=19, value_size=70),
}


def _kernels(program: tilewright.Program) -> list[str]:
    return [kernel.name for kernel in program.metadata.report.kernels]


@pytest.mark.parametrize("attention", _WAYS.values(), ids=_WAYS.keys())
def test_is_one_kernel(attention: Attention) -> None:
    model = attention.build()
    program = tilewright.compile(model, threads=[3])
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    # A row is a weighted mean of values around one; its weights have the rounding errors of scores around one.
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-5, atol=2e-6)
    assert len(_kernels(program)) == 1, _kernels(program)
    assert not [op for op in program.metadata.report.left_to_iree if op.is_dispatch]


@pytest.mark.parametrize(
    ("way", "dtype"),
    [
        ("plain", "bf16"),
        ("causal", "bf16"),
        ("grouped", "bf16"),
        ("few queries", "bf16"),
        ("masked keys", "f16"),
    ],
)
def test_is_one_kernel_in_narrow_types(way: str, dtype: str) -> None:
    attention = replace(_WAYS[way], dtype=dtype)
    model = attention.build()
    program = tilewright.compile(model, threads=[3])
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    error = program(*inputs)[0].astype(np.float64) - expected
    # Scores, scaled scores, weights and the result are each rounded once.
    unit = 2.0**-9 if dtype == "bf16" else 2.0**-12
    assert np.linalg.norm(error) <= 4 * unit * np.linalg.norm(expected)
    assert len(_kernels(program)) == 1, _kernels(program)
    assert "division after its contraction" in program.explain()
    assert ("exponentials within 2^-13" in program.explain()) == (dtype == "bf16")


def test_large_scores_in_bf16_leave_no_infinity() -> None:
    """A score and the maximum of its row must be rounded alike, because half a unit of such scores would overflow
    exp."""
    attention = replace(_PLAIN, dtype="bf16")
    program = tilewright.compile(attention.build(), threads=[2])
    query, key, value = attention.inputs(program)
    (result,) = program(query * 4096, key * 4096, value)
    assert np.isfinite(result.astype(np.float64)).all()


def test_large_scores_of_a_softmax_op_by_op_in_bf16_leave_no_infinity() -> None:
    """The maximum itself is in bf16 here, as PyTorch and JAX may write it."""
    nodes = [
        helper.make_node("MatMul", ["query", "key"], ["scores"]),
        helper.make_node("ReduceMax", ["scores", "last"], ["largest"]),
        helper.make_node("Sub", ["scores", "largest"], ["below"]),
        helper.make_node("Exp", ["below"], ["weights"]),
        helper.make_node("ReduceSum", ["weights", "last"], ["total"]),
        helper.make_node("Div", ["weights", "total"], ["shares"]),
        helper.make_node("MatMul", ["shares", "value"], ["y"]),
    ]
    rng = np.random.default_rng(0)
    scales = {"query": 60, "key": 60, "value": 1}
    inputs = {
        name: (rng.standard_normal((2, 64, 64)) * scale).astype(ml_dtypes.bfloat16)
        for name, scale in scales.items()
    }
    model = one_graph(nodes, inputs, {"last": np.array([-1])}, (TensorProto.BFLOAT16, (2, 64, 64)), opset=20)
    program = tilewright.compile(model, threads=1)
    assert len(_kernels(program)) == 1, _kernels(program)
    query, key, value = (array.astype(np.float64) for array in inputs.values())
    scores = query @ key
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ value
    result = program(*inputs.values())[0].astype(np.float64)
    # Scores differ by hundreds, so each row selects one value.
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_strict_numerics_divide_where_the_graph_does() -> None:
    attention = replace(_PLAIN, dtype="bf16")
    model = attention.build()
    program = tilewright.compile(model, threads=[2], numerics="strict")
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    error = program(*inputs)[0].astype(np.float64) - expected
    assert np.linalg.norm(error) <= 4 * 2.0**-9 * np.linalg.norm(expected)
    assert "division after" not in program.explain()
    assert "exponentials within" not in program.explain()


def test_a_masked_row_is_what_onnx_says() -> None:
    """A row without any key gives NaN, and no other row is affected."""
    attention = replace(_PLAIN, mask="rows")
    program = tilewright.compile(attention.build(), threads=[2])
    inputs = attention.inputs(program)
    (expected,) = float64_reference(attention.build(), inputs)
    assert np.isnan(expected[..., 2, :]).all()
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-5, atol=2e-6, equal_nan=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("where", [0, 1, 2], ids=["query", "key", "value"])
def test_what_is_no_number_goes_where_it_must(where: int, value: float) -> None:
    model = _PLAIN.build()
    program = tilewright.compile(model, threads=[2])
    inputs = _PLAIN.inputs(program)
    inputs[where][0, 1, 4, 5] = value
    (expected,) = float64_reference(model, inputs)
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-5, atol=2e-6, equal_nan=True)


def _in_blocks(
    model: onnx.ModelProto, keys: int, block: int, *, form: str = "online softmax of blocks", rows: int = 0
) -> tilewright.Program:
    """Returns the model's kernel with tiles that walk the keys in blocks, whatever the planner prefers."""
    plan = tilewright.compile(model, threads=[3]).plan
    (kernel,) = (kernel for kernel in plan.kernels if kernel.name.startswith("contract"))
    part = kernel.groups[0]
    (dim,) = (dim for dim, extent in enumerate(part.extents) if extent == keys and dim not in part.grid)
    part.tiles[dim] = block
    if rows:
        part.tiles[part.grid[-1]] = rows
    # A maximum and a sum run along the keys; the maximum comes first.
    maximum = next(
        op for op in part.ops if op.root and op.tilings[0].sizes[-1] == keys and op.numerics.accumulation
    )
    maximum.form = form
    return tilewright.compile(model, threads=[3], plan=plan)


@pytest.mark.parametrize(
    ("attention", "block"),
    [
        (_PLAIN, 16),
        (replace(_PLAIN, mask="rows"), 24),
        (replace(_PLAIN, mask="rows", dtype="bf16"), 16),
        (replace(_PLAIN, mask="rows", dtype="f16", heads=6), 10),
        (replace(_PLAIN, mask="causal", heads=4, key_heads=2, queries=53, dtype="bf16"), 7),
    ],
    ids=["f32", "f32 masked", "bf16 masked", "f16 masked", "bf16 causal grouped, odd blocks"],
)
def test_blocks_of_keys_add_up(attention: Attention, block: int) -> None:
    """The mask hides whole blocks of a row, the first ones or all, and the last block is shorter."""
    model = attention.build()
    program = _in_blocks(model, attention.keys, block)
    inputs = attention.inputs(program)
    if attention.mask == "rows":
        inputs[-1][..., 4, : 2 * block] = -np.inf
        inputs[-1][..., 4, 2 * block :] = 0
        inputs[-1][..., 5, block:] = -np.inf
        inputs[-1][..., 5, :block] = 0
    (expected,) = float64_reference(model, inputs)
    got = program(*inputs)[0].astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    unit = {"f32": 2.0**-22, "bf16": 2.0**-9, "f16": 2.0**-12}[attention.dtype]
    error = np.nan_to_num(got) - np.nan_to_num(expected)
    assert np.linalg.norm(error) <= 4 * unit * np.linalg.norm(np.nan_to_num(expected))
    assert "online softmax of blocks" in program.explain()


@pytest.mark.parametrize(
    "attention",
    [
        replace(_PLAIN, mask="causal"),
        replace(_PLAIN, mask="causal", queries=90, heads=4, key_heads=2),
        replace(_PLAIN, mask="causal", queries=53, dtype="bf16"),
        replace(_PLAIN, mask="before", keys=90),
        replace(_PLAIN, mask="infinite"),
    ],
    ids=[
        "f32",
        "more queries, grouped",
        "bf16",
        "more keys, written with indices",
        "rows of which nothing counts",
    ],
)
def test_blocks_that_a_mask_hides_are_left_out(attention: Attention) -> None:
    """Keys behind the last one that counts are never read: they are NaN, which would show in the result."""
    model = attention.build()
    program = _in_blocks(model, attention.keys, 16, form="online softmax with a causal bound", rows=6)
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    unit = {"f32": 2.0**-22, "bf16": 2.0**-9}[attention.dtype]

    def check(got: np.ndarray, rows: slice) -> None:
        np.testing.assert_array_equal(np.isnan(got[..., rows, :]), np.isnan(expected[..., rows, :]))
        of = np.nan_to_num(expected[..., rows, :])
        error = np.nan_to_num(got.astype(np.float64)[..., rows, :]) - of
        assert np.linalg.norm(error) <= 4 * unit * np.linalg.norm(of)

    check(program(*inputs)[0], slice(None))
    # The tile of the first rows ends before these keys.
    for tensor in inputs[1:3]:
        tensor[..., -1, :] = np.nan
    check(program(*inputs)[0], slice(0, 2))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_causal_attention_leaves_blocks_out_by_itself(dtype: str) -> None:
    attention = Attention(
        heads=2, key_heads=2, queries=512, keys=512, head_size=64, value_size=64, mask="causal", dtype=dtype
    )
    program = _one_right_kernel(attention, threads=1)
    assert "online softmax with a causal bound" in program.explain()


def _one_right_kernel(attention: Attention, *, threads: int) -> tilewright.Program:
    model = attention.build()
    program = tilewright.compile(model, threads=[threads])
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    error = program(*inputs)[0].astype(np.float64) - expected
    unit = {"f32": 2.0**-22, "bf16": 2.0**-9}[attention.dtype]
    assert np.linalg.norm(error) <= 4 * unit * np.linalg.norm(expected)
    assert len(_kernels(program)) == 1, _kernels(program)
    return program


# With SSE4.2, two kernels are predicted to be faster, because arithmetic takes longer than the memory traffic.
@pytest.mark.cpu_levels("x86-64-avx2", "x86-64-avx512", "cpu")
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_long_rows_of_scores_are_never_held_whole(dtype: str) -> None:
    """The planner itself chooses to walk if the scores of a few queries exceed a core's cache."""
    attention = Attention(
        heads=1, key_heads=1, queries=150, keys=4099, head_size=64, value_size=64, dtype=dtype
    )
    program = _one_right_kernel(attention, threads=2)
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
    assert len(_kernels(program)) == 1, _kernels(program)
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
        assert len(_kernels(program)) == 1, _kernels(program)
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
    assert len(_kernels(program)) == 1, _kernels(program)
    inputs[1][0, 7] = np.nan  # every row of one head reads it, unless it is masked for all
    result = program(*inputs, np.zeros_like(mask))[0]
    assert not result[0].any()
    assert np.isfinite(result).all()


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
    assert len(_kernels(program)) == 1, _kernels(program)


@pytest.mark.parametrize(
    ("where", "value"), [(0, np.inf), (1, np.nan), (2, -np.inf)], ids=["query", "key", "value"]
)
def test_what_is_no_number_crosses_blocks(where: int, value: float) -> None:
    model = _PLAIN.build()
    program = _in_blocks(model, _PLAIN.keys, 16)
    inputs = _PLAIN.inputs(program)
    inputs[where][0, 1, 20, 5] = value
    (expected,) = float64_reference(model, inputs)
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-5, atol=2e-6, equal_nan=True)


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
    program = tilewright.compile(model, threads=[2], plan=plan)
    rng = np.random.default_rng(3)
    inputs = [rounded(rng.standard_normal(spec.shape), dtype) for spec in program.signature.inputs]
    (expected,) = float64_reference(model, inputs)
    error = program(*inputs)[0].astype(np.float64) - expected
    unit = {"f32": 2.0**-22, "bf16": 2.0**-9}[dtype]
    assert np.linalg.norm(error) <= 2 * unit * np.linalg.norm(expected)
