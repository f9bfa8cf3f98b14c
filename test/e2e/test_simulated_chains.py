"""Tests of several contractions in one GPU kernel on the simulated device: numbers against float64, traffic,
safety."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from attention_models import Attention
from onnx import TensorProto
from test_mlp_chains import Mlp
from tilewright.records.signature import Array
from tilewright.reference.oracle import float64_reference, random_inputs
from tilewright.simulator.programs import simulate_program
from tilewright.system.ptxas import find_ptxas

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)

_F32, _F16, _BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16


def check(
    model: onnx.ModelProto,
    program: tilewright.Program,
    inputs: Sequence[Array],
    folder: Path,
    *,
    steps: float,
) -> Any:
    """Checks that the program is one kernel without a bug, whose result is off by at most `steps` of its mean size;
    returns the device's report."""
    ran = simulate_program(program, folder, inputs)  # raises if a kernel has a bug
    assert ran.invented == ()
    assert len(ran.kernels) == 1
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    error = ran.outputs[0].astype(np.float64).reshape(expected.shape) - expected
    assert np.abs(error).max() <= steps * np.abs(expected).mean()
    return ran.kernels[0]


def _moved_once(report: Any, program: tilewright.Program, inputs: Sequence[Array]) -> None:
    """Checks that the traffic behind the L2 is the predicted one: every input once."""
    (kernel,) = program.metadata.report.kernels
    predicted = {term.name: term.value for term in kernel.predicted}["input bytes"]
    assert predicted == sum(array.nbytes for array in inputs)
    assert report.dram_bytes_read <= 1.05 * predicted


@pytest.mark.parametrize(
    ("mlp", "steps"),
    [
        (Mlp(rows=64, inner=64, hidden=128, columns=64, function="Relu", given=True, dtype=_F16), 4e-3),
        (
            Mlp(
                rows=64, inner=32, hidden=64, columns=32, function="silu", gated=True, given=True, dtype=_BF16
            ),
            4e-2,
        ),
        (Mlp(rows=33, inner=20, hidden=30, columns=13, function="Tanh", given=True, dtype=_F16), 4e-3),
        (Mlp(rows=37, inner=21, hidden=40, columns=19, function="Relu", given=True, dtype=_F32), 1e-5),
        (Mlp(rows=129, inner=4, hidden=3, columns=53, function="Relu", given=True, dtype=_F32), 1e-5),
        (Mlp(rows=129, inner=4, hidden=3, columns=53, function="Relu", given=True, dtype=_F16), 4e-3),
    ],
    ids=["f16", "bf16, gated", "f16, odd sizes", "f32, odd sizes", "f32, few terms", "f16, few terms"],
)
def test_a_second_matmul_reads_the_first_from_shared_memory(mlp: Mlp, steps: float, tmp_path: Path) -> None:
    model, inputs = mlp.build(), list(mlp.values().values())
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    report = check(model, program, inputs, tmp_path, steps=steps)
    if mlp.rows == 64:
        _moved_once(report, program, inputs)
        assert report.shared_reads.conflicts == 0


def nerf(rows: int, width: int, layers: int) -> onnx.ModelProto:
    """Builds layers of equal width, and three columns at the end."""
    g = GraphBuilder("nerf")
    x = g.input("x", (rows, width), _F16)
    for layer in range(layers):
        x = g.op("Relu", g.op("MatMul", x, g.input(f"w{layer}", (width, width), _F16)))
    g.output(g.op("MatMul", x, g.input("last", (width, 3), _F16)), (rows, 3), _F16)
    return g.build()


def test_seven_layers_are_one_kernel(tmp_path: Path) -> None:
    model = nerf(64, 64, 6)
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal((64, 64)).astype(np.float16)]
    inputs += [(rng.standard_normal((64, 64)) / 6).astype(np.float16) for _ in range(6)]
    inputs.append((rng.standard_normal((64, 3)) / 8).astype(np.float16))
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    check(model, program, inputs, tmp_path, steps=1e-2)


def test_sums_stay_in_registers_beside_a_bias(tmp_path: Path) -> None:
    """The bias is staged for the rows of a tile, and copied before the contraction; behind it, the accumulators would
    have to wait."""
    g = GraphBuilder("mlp")
    shapes = {"x": (256, 64), "w1": (64, 192), "b1": (192,), "w2": (192, 64), "b2": (64,)}
    names = {name: g.input(name, shape, _F16) for name, shape in shapes.items()}
    x = g.op("Relu", g.op("Add", g.op("MatMul", names["x"], names["w1"]), names["b1"]))
    g.output(g.op("Add", g.op("MatMul", x, names["w2"]), names["b2"]), (256, 64), _F16)
    model = g.build()
    rng = np.random.default_rng(5)
    inputs = [
        (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float16) for shape in shapes.values()
    ]
    for target in ("cuda:h200", "cuda:a100"):
        folder = tmp_path / target[5:]
        program = tilewright.compile(model, target, dump_dir=folder)
        check(model, program, inputs, folder, steps=1e-2)
        (placed,) = folder.glob("passes/*/*/*/*_tile-allocate-buffers.mlir")
        sums = re.findall(r"tile\.alloc( at \d+)? : <\S*xf32, block>", placed.read_text())
        assert sums == ["", ""], "a buffer has a place"


_PLAIN = Attention(heads=2, key_heads=2, queries=64, keys=128, head_size=32, value_size=32, dtype="f16")
_WAYS = {
    "bf16, causal": replace(_PLAIN, dtype="bf16", mask="causal", keys=64),
    "f32": replace(_PLAIN, dtype="f32", heads=1, key_heads=1, keys=64),
    "f16, grouped, masked keys": replace(_PLAIN, heads=4, key_heads=2, queries=32, keys=64, mask="keys"),
    "f16, odd sizes": replace(_PLAIN, queries=37, keys=53, head_size=24, value_size=20),
}


@pytest.mark.parametrize("attention", _WAYS.values(), ids=_WAYS.keys())
def test_attention_is_one_kernel(attention: Attention, tmp_path: Path) -> None:
    model = attention.build()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    steps = {"f32": 2e-5, "f16": 1e-2, "bf16": 8e-2}[attention.dtype]
    check(model, program, attention.inputs(program), tmp_path, steps=steps)


def test_long_rows_of_scores_are_walked_in_blocks(tmp_path: Path) -> None:
    """Blocks could not share 1021 keys evenly, so a block reads a few keys at a time, with online softmax."""
    attention = replace(_PLAIN, heads=32, key_heads=32, queries=130, keys=1021)
    model = attention.build()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    check(model, program, attention.inputs(program), tmp_path, steps=1e-2)
    assert "online softmax of blocks" in program.explain()


def test_a_norm_of_whole_rows_is_of_the_kernel(tmp_path: Path) -> None:
    """Rows are short here; a block holds too few long ones, which need a grid barrier or a launch."""
    assert len(_normalized(64, 64, 128, tmp_path).kernels) == 1
    assert "behind grid barrier 1" in _normalized(512, 768, 768, tmp_path).explain()
    launches = _normalized(512, 768, 768, tmp_path, grid_sync=False)
    assert len(launches.kernels) == 2
    assert "one kernel is predicted slower" in launches.explain()


def _normalized(
    rows: int, inner: int, columns: int, folder: Path, *, grid_sync: bool = True
) -> tilewright.Program:
    g = GraphBuilder("normalized")
    x, w = g.input("x", (rows, inner), _F16), g.input("w", (inner, columns), _F16)
    gain, bias = g.input("gain", (columns,), _F16), g.input("bias", (columns,), _F16)
    y = g.op("LayerNormalization", g.op("MatMul", x, w), gain, bias, axis=-1, epsilon=1e-5)
    g.output(y, (rows, columns), _F16)
    model = g.build()
    program = tilewright.compile(model, "cuda:h200", dump_dir=folder, grid_sync=grid_sync)
    if rows == 64:
        rng = np.random.default_rng(2)
        inputs = [
            rng.standard_normal(shape).astype(np.float16) for shape in ((64, 64), (64, 128), (128,), (128,))
        ]
        check(model, program, inputs, folder, steps=1e-2)
    return program


@pytest.mark.parametrize(
    ("sequence", "head_size", "target"), [(512, 64, "sm_80"), (208, 80, "sm_90")], ids=["g3", "g9"]
)
def test_chimeras_attention_does_not_spill(sequence: int, head_size: int, target: str) -> None:
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    attention = Attention(
        heads=8,
        key_heads=8,
        queries=sequence,
        keys=sequence,
        head_size=head_size,
        value_size=head_size,
        dtype="f16",
    )
    program = tilewright.compile(attention.build(), target)
    (kernel,) = program.kernels
    assert program.metadata.resources[kernel.name].spill_bytes == 0


def _few_queries(
    element: int, queries: int, keys: int, *, masked: bool, batch: tuple[int, ...] = (2,)
) -> onnx.ModelProto:
    g = GraphBuilder("decode")
    q, k, v = (
        g.input(name, (*batch, rows, 64), element)
        for name, rows in (("q", queries), ("k", keys), ("v", keys))
    )
    last, before = len(batch) + 1, len(batch)
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[*range(len(batch)), last, before]))
    if masked:
        scores = g.op("Add", scores, g.input("mask", (1, 1, keys), element))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), (*batch, queries, 64), element)
    return g.build()


@pytest.mark.parametrize(
    ("element", "queries", "counted", "batch", "steps"),
    [
        (_F32, 1, 2048, (2,), 1e-5),
        (_F32, 3, 500, (2,), 1e-5),
        (_F32, 1, 2048, (1, 2), 1e-5),
        (_F16, 1, 8192, (2,), 4e-2),
    ],
    ids=["f32", "f32, three queries, parts without a key", "f32, scores behind a reshape", "f16"],
)
def test_few_queries_share_long_keys(
    element: int, queries: int, counted: int, batch: tuple[int, ...], steps: float, tmp_path: Path
) -> None:
    """This is flash decoding. In f16 the model itself rounds scores and weights, which shows in sums over many
    keys."""
    keys, dtype = (2048, np.float32) if element == _F32 else (8192, np.float16)
    masked = counted < keys
    rng = np.random.default_rng(5)
    inputs: list[Array] = [
        rng.standard_normal((*batch, rows, 64)).astype(dtype) for rows in (queries, keys, keys)
    ]
    if masked:
        inputs.append(np.where(np.arange(keys) < counted, 0, -np.inf).astype(dtype)[None, None])
    model = _few_queries(element, queries, keys, masked=masked, batch=batch)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    assert program.kernels[0].workgroups >= 32
    assert "sums relative to maxima of parts" in program.explain()
    if find_ptxas():
        assert not any(own.spill_bytes for own in program.metadata.resources.values())
    ran = simulate_program(program, tmp_path, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    error = ran.outputs[0].astype(np.float64).reshape(expected.shape) - expected
    assert np.abs(error).max() <= steps * np.abs(expected).mean()
    # Keys and values are read once, by the kernel of the partial results.
    total = sum(array.nbytes for array in inputs)
    assert 0.95 * total <= ran.kernels[0].dram_bytes_read <= 1.05 * total


def test_strict_numerics_keep_long_keys_whole() -> None:
    program = tilewright.compile(_few_queries(_F32, 1, 2048, masked=False), "cuda:h200", numerics="strict")
    assert "maxima of parts" not in program.explain()


@pytest.mark.parametrize("dtype", [_F16, _F32], ids=["f16", "f32"])
def test_what_others_read_behind_a_slice_stays(dtype: int, tmp_path: Path) -> None:
    """Two matmuls read half of a buffer's columns each: the K of the first ends where that of the second begins."""
    g = GraphBuilder("halves")
    x = g.input("x", (64, 64), dtype)
    hidden = g.op("Relu", g.op("MatMul", x, g.input("w1", (64, 104), dtype)))
    halves = [
        g.op(
            "MatMul",
            g.op("Slice", hidden, *(g.constant(np.array([at], np.int64)) for at in (first, first + 52, 1))),
            g.input(name, (52, 64), dtype),
        )
        for first, name in ((0, "w2"), (52, "w3"))
    ]
    g.output(g.op("Add", *halves), (64, 64), dtype)
    model = g.build()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    check(model, program, random_inputs(model, 0), tmp_path, steps=1e-5 if dtype == _F32 else 4e-3)
