"""Tests on the simulated device that blocks access their tiles of tensors as a plan states."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder

ROWS, SIZE = 77, 321


@pytest.fixture(scope="module")
def rows() -> onnx.ModelProto:
    """Returns a softmax of rows that begin anywhere in a sector of memory."""
    g = GraphBuilder("rows")
    g.output(
        g.op("Softmax", g.input("x", (ROWS, SIZE), TensorProto.FLOAT), axis=-1),
        (ROWS, SIZE),
        TensorProto.FLOAT,
    )
    return g.build()


@pytest.fixture(scope="module")
def plan(rows: onnx.ModelProto) -> tilewright.Plan:
    found = tilewright.compile(rows, "cuda:h200", tuning=False).plan
    assert found is not None
    return found


def _sectors(model: onnx.ModelProto, plan: tilewright.Plan, access: str, folder: Path) -> int:
    """Returns the sectors of memory that the kernel reads if its input is accessed in this way; checks the result."""
    stated = copy.deepcopy(plan)
    (part,) = stated.kernels[0].groups
    next(tensor for tensor in part.tensors if tensor.tensor == "in0").access = access
    program = tilewright.compile(model, "cuda:h200", plan=stated, dump_dir=folder, tuning=False)
    assert program.plan is not None and program.plan.to_json() == stated.to_json()
    inputs = random_inputs(model, 0)
    ran = simulate_program(program, folder, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    assert relative_error(ran.outputs[0], expected) <= model_tolerance(model)
    return ran.kernels[0].global_reads.sectors


def test_a_tile_is_copied_as_a_whole_or_accessed_directly(
    rows: onnx.ModelProto, plan: tilewright.Plan, tmp_path: Path
) -> None:
    """A warp that reads part of a row directly reads both sectors in which the part ends; a copy reads each once."""
    whole = _sectors(rows, plan, "whole", tmp_path / "whole")
    assert whole == _sectors(rows, plan, "derived", tmp_path / "derived")
    assert whole < _sectors(rows, plan, "direct", tmp_path / "direct")


def test_a_tile_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """A row of 240000 bytes is more than the memory of a block."""
    g = GraphBuilder("long")
    g.output(
        g.op("ReduceSum", g.input("x", (200, 60000), TensorProto.FLOAT), g.constant(np.array([1]))),
        (200, 1),
        TensorProto.FLOAT,
    )
    model = g.build()
    plan = tilewright.compile(model, "cuda:h200", tuning=False, numerics="strict").plan
    assert plan is not None
    plan.kernels[0].groups[0].tensors[0].access = "whole"
    with pytest.raises(tilewright.CompileError, match="cannot be copied as a whole: a block has no room for"):
        tilewright.compile(model, "cuda:h200", tuning=False, numerics="strict", plan=plan)
