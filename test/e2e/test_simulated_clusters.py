"""Tests of clusters of blocks on the simulated device: each cluster reads values common to all rows once, and the
numbers are right."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.programs import SimulatedRun, simulate_program

TYPES = {"f32": (TensorProto.FLOAT, np.float32), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}


def layer_norm(rows: int, size: int, element: str) -> onnx.ModelProto:
    kind, dtype = TYPES[element]
    draw = np.random.default_rng(size)
    weights = [
        onnx.numpy_helper.from_array(draw.standard_normal(size).astype(dtype), name)
        for name in ("gain", "bias")
    ]
    graph = helper.make_graph(
        [helper.make_node("LayerNormalization", ["x", "gain", "bias"], ["y"])],
        "layer_norm",
        [helper.make_tensor_value_info("x", kind, [rows, size])],
        [helper.make_tensor_value_info("y", kind, [rows, size])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(
    model: onnx.ModelProto, target: str, folder: Path, plan: tilewright.Plan | None = None
) -> tuple[tilewright.Program, SimulatedRun]:
    inputs = random_inputs(model, 0)
    program = tilewright.compile(model, target=target, dump_dir=folder, strict=True, tuning=False, plan=plan)
    ran = simulate_program(program, folder, inputs)
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    assert relative_error(ran.outputs[0], expected) <= model_tolerance(model)
    return program, ran


# The cases are: rows of whole vectors; rows of 641 elements, whose last elements fill no vector; rows of bf16 with
# eight elements to a vector; and numbers of rows that no cluster divides.
@pytest.mark.parametrize(
    "rows, size, element",
    [(256, 768, "f32"), (160, 641, "f32"), (256, 1024, "bf16"), (77, 321, "f32"), (197, 1027, "bf16")],
)
def test_a_cluster_reads_gain_and_bias_once(rows: int, size: int, element: str, tmp_path: Path) -> None:
    model = layer_norm(rows, size, element)
    program, ran = run(model, "cuda:h200", tmp_path)
    (report,) = ran.kernels
    ptx = (tmp_path / "kernels.ptx").read_text()
    (blocks,) = map(int, re.findall(r"\.reqnctapercluster (\d+), 1, 1", ptx))
    assert blocks > 1
    clusters = report.blocks // blocks
    assert report.cluster_barriers == 2 * clusters
    # The smallest bindings are gain and bias; two blocks read a sector in which the part of one of them ends.
    weight = -(-size * np.dtype(TYPES[element][1]).itemsize // 32)
    read = sorted(binding.sectors_read for binding in report.bindings if binding.sectors_read > 0)
    assert all(sectors <= clusters * (weight + blocks) for sectors in read[:2])
    moved = report.global_reads.sectors + report.global_writes.sectors
    assert moved * 32 <= 1.06 * (inputs_bytes(program) + 2 * weight * 32)


def inputs_bytes(program: tilewright.Program) -> int:
    """Returns the bytes of the input and of the output, which are equal."""
    assert program.signature is not None
    (x,) = program.signature.inputs
    return 2 * int(np.prod(x.shape)) * x.numpy_dtype.itemsize


@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_a_cluster_has_the_blocks_that_the_plan_says(cluster: int, tmp_path: Path) -> None:
    model = layer_norm(256, 768, "f32")
    plan = tilewright.compile(model, target="cuda:h200", tuning=False).plan
    assert plan is not None and plan.kernels[0].groups[0].cluster == 8
    plan.kernels[0].groups[0].cluster = cluster
    _, ran = run(model, "cuda:h200", tmp_path, plan)
    (report,) = ran.kernels
    assert report.cluster_barriers == (2 * report.blocks // cluster if cluster > 1 else 0)


def test_an_older_gpu_has_no_clusters(tmp_path: Path) -> None:
    _, ran = run(layer_norm(256, 768, "f32"), "cuda:a100", tmp_path)
    assert ran.kernels[0].cluster_barriers == 0
    assert ".reqnctapercluster" not in (tmp_path / "kernels.ptx").read_text()


def test_kernels_for_an_older_gpu_as_well_have_none(tmp_path: Path) -> None:
    tilewright.compile(
        layer_norm(256, 768, "f32"), target="cuda:h200,cuda:a100", dump_dir=tmp_path, strict=True
    )
    code = [path.read_text() for path in tmp_path.glob("kernels*.ptx")]
    assert len(code) == 2
    assert all(".reqnctapercluster" not in text for text in code)
