"""Tests of softmax and norm on rows of accumulators that are still in a GPU's registers, on the simulated device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from attention_models import Attention
from onnx import TensorProto
from simulated_products import by_warpgroups
from test_simulated_chains import check
from tilewright.reference.oracle import float64_reference
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)

_TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
# The steps are relative to the mean: half a step of the type at the largest probability, which is about 30 times the
# mean.
_STEPS = {"f32": 2e-5, "f16": 2e-2, "bf16": 1.6e-1}


def _rows(function: str, size: tuple[int, int, int], dtype: str) -> onnx.ModelProto:
    """Builds a product of `size` (M, N, K), and a function of its rows."""
    rows, columns, terms = size
    element = _TYPES[dtype]
    g = GraphBuilder("rows")
    y = g.op("MatMul", g.input("x", (rows, terms), element), g.input("w", (terms, columns), element))
    if function == "norm":
        gain, bias = g.input("gain", (columns,), element), g.input("bias", (columns,), element)
        y = g.op("LayerNormalization", y, gain, bias, axis=-1, epsilon=1e-5)
    elif function == "sum and maximum":
        y = g.op(
            "Sub", g.op("ReduceMax", y, keepdims=1, axes=[1]), g.op("ReduceMean", y, keepdims=1, axes=[1])
        )
        columns = 1
    else:
        y = g.op(function, y, axis=-1)
    g.output(y, (rows, columns), element)
    return g.build()


def _inputs(program: tilewright.Program) -> list[np.ndarray]:
    rng = np.random.default_rng(11)
    return [
        (rng.standard_normal(spec.shape) / (1 if i == 0 else 4)).astype(spec.dtype)
        for i, spec in enumerate(program.signature.inputs)
    ]


def _program(folder: Path) -> str:
    """Returns the tile program with offsets of buffers in shared memory (`tile.alloc at 0 : `)."""
    return max(folder.glob("passes/**/tile_program*/*.mlir"), key=lambda dump: dump.name).read_text()


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("function", "size"),
    [
        ("Softmax", (64, 64, 32)),
        ("LogSoftmax", (37, 53, 21)),
        ("norm", (33, 128, 48)),
        ("norm", (100, 30, 64)),
        ("sum and maximum", (50, 96, 40)),
    ],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else value,
)
def test_rows_are_reduced_in_registers(
    function: str, size: tuple[int, int, int], dtype: str, tmp_path: Path
) -> None:
    model = _rows(function, size, dtype)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    check(model, program, _inputs(program), tmp_path, steps=_STEPS[dtype])
    assert "tile.alloc : " in _program(tmp_path), "sums have no place in shared memory"


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_product_of_one_column_and_its_rows(batch: tuple[int, ...], dtype: str, tmp_path: Path) -> None:
    """The sum of a row may be a product itself, whose rows have one element."""
    g = GraphBuilder("column")
    element = _TYPES[dtype]
    y = g.op("MatMul", g.input("x", (*batch, 34, 5), element), g.input("w", (*batch, 5, 130), element))
    y = g.op("MatMul", y, g.input("v", (*batch, 130, 1), element))
    gain, bias = g.input("gain", (1,), element), g.input("bias", (1,), element)
    y = g.op("Add", y, g.op("LayerNormalization", y, gain, bias, axis=-1, epsilon=1e-3))
    g.output(y, (*batch, 34, 1), element)
    model = g.build()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    check(model, program, _inputs(program), tmp_path, steps=_STEPS[dtype])


@pytest.mark.parametrize("reduction", ["ReduceSum", "ReduceProd"])
def test_strict_rows_are_combined_in_f32_and_rounded_once(reduction: str, tmp_path: Path) -> None:
    g = GraphBuilder("strict")
    y = g.op(
        "MatMul", g.input("x", (64, 32), TensorProto.BFLOAT16), g.input("w", (32, 64), TensorProto.BFLOAT16)
    )
    axes = [g.ints([1])] if reduction == "ReduceSum" else []
    s = g.op(reduction, y, *axes, keepdims=1, **({} if axes else {"axes": [1]}))
    g.output(g.op("Sub", y, s), (64, 64), TensorProto.BFLOAT16)
    program = tilewright.compile(g.build(), "cuda:h200", numerics="strict", dump_dir=tmp_path)
    # Products and their sums are exact.
    rng = np.random.default_rng(11)
    x, w = (rng.integers(-4, 5, shape) / 16 for shape in ((64, 32), (32, 64)))
    step = program.signature.inputs[0].dtype
    run = simulate_program(program, tmp_path, [x.astype(step), w.astype(step)])
    exact = (x @ w).astype(step)
    total = (
        (np.add if reduction == "ReduceSum" else np.multiply)
        .reduce(exact.astype(np.float64), axis=1)
        .astype(step)
    )
    expected = (exact.astype(np.float32) - total.astype(np.float32)[:, None]).astype(step)
    assert run.outputs is not None
    np.testing.assert_array_equal(np.asarray(run.outputs[0]), expected)


def test_warpgroups_reduce_rows(tmp_path: Path) -> None:
    """A modified plan forces this: the planner itself would choose warps."""
    model = _rows("Softmax", (100, 10, 64), "f16")
    plan = tilewright.compile(model, "cuda:h200", tuning=False).plan
    assert plan is not None
    by_warpgroups(64)(plan)
    program = tilewright.compile(model, "cuda:h200", plan=plan, dump_dir=tmp_path)
    (kernel,) = program.kernels
    assert [op.micro_kernel for op in kernel.ops if op.micro_kernel] == ["wgmma-64x8"]
    check(model, program, _inputs(program), tmp_path, steps=_STEPS["f16"])


def test_what_is_not_a_number_stays_in_its_row(tmp_path: Path) -> None:
    model = _rows("Softmax", (32, 64, 32), "f32")
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    x, w = _inputs(program)
    x[3, 5], x[20, 0] = np.nan, np.inf
    ran = tilewright.simulator.programs.simulate_program(program, tmp_path, [x, w])
    assert ran.outputs is not None
    bad = np.isnan(ran.outputs[0]).all(axis=1)
    assert list(np.flatnonzero(bad)) == [3, 20]
    assert not np.isnan(np.delete(ran.outputs[0], [3, 20], axis=0)).any()


_LONG = Attention(heads=32, key_heads=32, queries=70, keys=518, head_size=32, value_size=24, dtype="f16")


@pytest.mark.parametrize(
    "attention",
    [
        _LONG,
        replace(_LONG, heads=1, key_heads=1, dtype="bf16", queries=64, keys=1029, value_size=64),
        Attention(heads=16, key_heads=16, queries=512, keys=512, head_size=64, value_size=64, dtype="f32"),
        replace(_LONG, queries=134, keys=519, mask="causal"),
        replace(_LONG, mask="rows"),
        replace(_LONG, key_heads=16, mask="keys"),
    ],
    ids=["f16", "bf16, whole rows", "f32", "causal", "rows without a key", "grouped, masked keys"],
)
def test_the_output_grows_in_registers(attention: Attention, tmp_path: Path) -> None:
    """It grows over the blocks of keys, and is rescaled whenever the maximum rises."""
    model = attention.build()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    assert "online softmax of blocks" in program.explain()
    inputs = attention.inputs(program)
    ran = tilewright.simulator.programs.simulate_program(program, tmp_path, inputs)
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    error = np.abs(ran.outputs[0].astype(np.float64).reshape(expected.shape) - expected)
    assert np.array_equal(np.isnan(error), np.isnan(expected))
    assert np.nanmax(error) <= 5 * _STEPS[attention.dtype] * np.nanmean(np.abs(expected))
    kernel = _program(tmp_path)
    assert kernel.count("tile.alloc : ") == 3, (
        "scores, their product with the values, and what that is added to"
    )
    assert kernel.count("prefetch = rhs") == 2, "the values, and the keys of the next block"
