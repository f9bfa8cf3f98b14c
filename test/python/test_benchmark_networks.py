"""Figures of convolutional networks that need no GPU: what tensor instructions compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from tilewright.simulator.programs import simulate_program
from tilewright.system.ptxas import find_ptxas

from benchmarks.network_figures import tensor_share
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.networks import conv, finish, image_input
from benchmarks.workloads.workload import Workload


def _in_f16(build: Callable[[], onnx.ModelProto]) -> onnx.ModelProto:
    return Workload(name="convolution", build=build, description="", suite="").in_type("f16").build()


def _one(groups: int = 1) -> onnx.ModelProto:
    g = GraphBuilder("convolution")
    return finish(g, conv(g, image_input(g, 8, 32), 32, groups=groups))


# mma.m16n8k16: 2048 multiply-adds of a warp.
def test_instructions_in_simulation_cover_the_multiply_adds(tmp_path: Path) -> None:
    model = _in_f16(_one)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    share = tensor_share(model, program)
    assert (share.tensor, share.total) == (64 * 32 * 32 * 9, 64 * 32 * 32 * 9)
    (label,) = {op.micro_kernel for kernel in program.kernels for op in kernel.ops if op.micro_kernel}
    assert label.startswith("mma_sync")
    image = np.random.default_rng(2).standard_normal((1, 32, 8, 8)).astype(np.float16)
    ran = simulate_program(program, tmp_path, [image])
    assert 2048 * sum(kernel.instructions.tensor for kernel in ran.kernels) >= share.total


# In f32, threads multiply by themselves; groups of fewer channels do not count.
def test_what_threads_compute_is_no_share() -> None:
    model = _one()
    share = tensor_share(onnx.shape_inference.infer_shapes(model), tilewright.compile(model, "cuda:h200"))
    assert share.tensor == 0
    assert len(share.others) == 1
    narrow = _one(groups=4)
    assert tensor_share(narrow, tilewright.compile(narrow, "cuda:h200")).total == 0


def _compiled(name: str) -> tuple[onnx.ModelProto, tilewright.Program]:
    """Compiles a workload in f16; checks that nothing stays with IREE and that no kernel spills."""
    model = onnx.shape_inference.infer_shapes(WORKLOADS[name].in_type("f16").build())
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT16
    program = tilewright.compile(model, "cuda:h200", deploy=False)
    assert not any(op.is_dispatch for op in program.metadata.report.left_to_iree)
    resources = program.metadata.resources or {}
    assert len(resources) == len(program.kernels)
    assert not any(kernel.spill_bytes for kernel in resources.values())
    return model, program


# Windows are copied element by element, in up to eleven steps before the first product.
@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
def test_long_pipelines_of_elements_keep_their_registers() -> None:
    _compiled("resnet-50-14x256x256-k3s1")


@pytest.mark.full
@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
@pytest.mark.parametrize("name", [w.name for w in WORKLOADS.values() if w.suite in ("networks", "convs")])
def test_networks_are_on_tensor_cores(name: str) -> None:
    assert tensor_share(*_compiled(name)).share >= 0.9
