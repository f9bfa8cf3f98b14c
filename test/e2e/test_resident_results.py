"""Results that blocks of a GPU keep in shared memory for a later phase: a residual behind a norm and two products."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder, rms_norm

_ROWS, _WIDTH, _HIDDEN = 128, 512, 1376
_TARGET = "cuda:h200"


def residual() -> onnx.ModelProto:
    """The second half of a layer: what the first product leaves is normalised, and added to the last product."""
    g = GraphBuilder("residual")
    x = g.input("x", (_ROWS, _WIDTH))
    kept = g.op("Add", g.op("MatMul", x, g.weight((_WIDTH, _WIDTH), fan_in=_WIDTH)), x)
    hidden = g.op("MatMul", rms_norm(g, kept, _WIDTH), g.weight((_WIDTH, _HIDDEN), fan_in=_WIDTH))
    last = g.op("MatMul", g.op("Relu", hidden), g.weight((_HIDDEN, _WIDTH), fan_in=_HIDDEN))
    g.output(g.op("Add", last, kept), (_ROWS, _WIDTH))
    return g.build()


@pytest.fixture(scope="module")
def program() -> tilewright.Program:
    return tilewright.compile(residual(), target=_TARGET, strict=True)


def _simulated(plan: tilewright.Plan, folder: Path) -> tuple[np.ndarray, int]:
    """Returns the result, and the bytes that the kernel reads of global memory."""
    model = residual()
    again = tilewright.compile(model, target=_TARGET, plan=plan, dump_dir=folder, strict=True)
    run = simulate_program(again, folder, random_inputs(model, 0))
    (report,) = run.kernels
    report.check()
    assert run.outputs is not None
    return run.outputs[0], report.global_reads.bytes


def test_a_block_finds_the_residual_that_it_wrote(program: tilewright.Program, tmp_path: Path) -> None:
    """Without resident tiles, the same kernel reads the residual from memory, and computes the same bits."""
    (kernel,) = program.plan.kernels
    (tile,) = kernel.resident_tiles
    assert tile.writer_result >= 0
    assert kernel.groups[tile.writer].tiles[0] == kernel.groups[tile.reader].tiles[0]
    bare = program.plan
    bare.kernels[0].resident_tiles = []
    result, read = _simulated(program.plan, tmp_path / "kept")
    other, all_read = _simulated(bare, tmp_path / "read")
    model = residual()
    (expected,) = float64_reference(model, random_inputs(model, 0))
    assert relative_error(result, expected) <= model_tolerance(model)
    assert np.array_equal(result, other)
    assert all_read - read == 4 * _ROWS * _WIDTH


def test_explain_says_where_each_tensor_lies(program: tilewright.Program) -> None:
    text = program.explain()
    assert "handed on in shared memory: each block reads the tile that it wrote (1 x)" in text
    assert "handed on in L2: a contraction reads it in steps" in text


def test_a_result_that_other_blocks_read_cannot_stay(program: tilewright.Program) -> None:
    plan = program.plan
    (tile,) = plan.kernels[0].resident_tiles
    tile.reader, tile.reader_input = tile.reader - 1, 0
    with pytest.raises(tilewright.PlanError, match=f"cannot keep result {tile.writer_result} of group"):
        tilewright.compile(residual(), target=_TARGET, plan=plan, strict=True)
