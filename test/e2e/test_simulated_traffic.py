"""Tests of the traffic that GPU plans predict, compared with the simulated device: L2 traffic of the blocks, and
traffic behind the L2."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.device import SECTOR_BYTES
from tilewright.simulator.programs import SimulatedRun, simulate_program

from benchmarks.workloads import WORKLOADS, MmoeOptions, Workload, contractions, recommendation, transformers
from benchmarks.workloads.attention import windows
from benchmarks.workloads.contractions import AttentionOptions, ChainOptions
from benchmarks.workloads.transformers import LlamaOptions

pytestmark = pytest.mark.lands(one_in=8)

_WALKED = ChainOptions(batch=12, m=192, n=64, k=64, l=512)
_CAUSAL = AttentionOptions(heads=4, key_value_heads=4, sequence=128, head_size=64, is_causal=True)
_CUT = ChainOptions(batch=2, m=104, n=64, k=64, l=208)
_ODD = ChainOptions(batch=2, m=53, n=40, k=64, l=77)
_GROUPED = AttentionOptions(heads=8, key_value_heads=2, sequence=256, head_size=64, is_causal=False)
_MASKED = AttentionOptions(heads=8, key_value_heads=2, sequence=256, head_size=128, is_causal=True)
_SHORT_BLOCKS = ChainOptions(batch=4, m=256, n=80, k=80, l=256)


_WORKLOADS = {
    "whole tiles": partial(contractions.matmul, 128, 256, 192),
    "few rows": partial(contractions.matmul, 4, 512, 256),
    "one row, blocks that share tiles": partial(contractions.dense, 1, 4096, 1024),
    "two lanes": partial(contractions.matmul, 512, 768, 2),
    "rows of an odd number of sectors": partial(contractions.matmul, 96, 200, 120),
    "rows of an odd number of elements": partial(contractions.matmul, 33, 1027, 65),
    "experts of one row": partial(recommendation.mmoe, MmoeOptions()),
    "chain, blocks of the middle dim": partial(contractions.gemm_chain, _WALKED),
    "chain with a softmax": partial(contractions.softmax_chain, _WALKED),
    "chain, tiles cut at the border": partial(contractions.softmax_chain, _CUT),
    "chain of odd lines": partial(contractions.softmax_chain, _ODD),
    "chain with a softmax, few rows a block": partial(contractions.softmax_chain, _SHORT_BLOCKS),
    "causal attention": partial(contractions.attention, _CAUSAL),
    "causal attention of large heads": partial(contractions.attention, _MASKED),
    "grouped attention": partial(contractions.attention, _GROUPED),
    "attention, biases read through split heads": partial(windows, 48),
}


def _simulated(
    name: str, dtype: str, target: str, folder: Path, *, grid_sync: bool = True
) -> tuple[tilewright.Program, SimulatedRun]:
    workload = Workload(name=name, build=_WORKLOADS[name], description="", suite="gemm").in_type(dtype)
    model = workload.build()
    inputs = random_inputs(model, 0)
    program = tilewright.compile(model, target, dump_dir=folder, grid_sync=grid_sync)
    ran = simulate_program(program, folder, inputs)
    assert ran.outputs is not None
    for output, expected in zip(ran.outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(output, expected) <= model_tolerance(model)
    return program, ran


@pytest.mark.parametrize("target", ["cuda:h200", "cuda:a100"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("name", _WORKLOADS)
def test_traffic_is_what_the_plan_predicts(name: str, dtype: str, target: str, tmp_path: Path) -> None:
    program, ran = _simulated(name, dtype, target, tmp_path)
    asked = sum(kernel.l2_traffic_bytes for kernel in program.kernels)
    sectors = sum(k.global_reads.sectors + k.global_writes.sectors for k in ran.kernels)
    assert 0.95 * asked <= sectors * SECTOR_BYTES <= 1.05 * asked
    past = sum(k.dram_bytes_read + k.dram_bytes_written for k in ran.kernels)
    assert past <= 1.05 * sum(kernel.predicted_bytes for kernel in program.kernels)
    if dtype == "f16" and name == "rows of an odd number of elements":
        # Only copies of the extra word of shifted lines may conflict: those of neighbouring lines are four banks
        # apart.
        for kernel in ran.kernels:
            assert kernel.shared_reads.conflicts == 0
            assert kernel.main_loop_conflicts <= kernel.shared_writes.conflicts
    else:
        assert [k.main_loop_conflicts for k in ran.kernels] == [0] * len(ran.kernels)
    if "chain" in name:  # others may have few steps, without a loop
        assert any(site.is_in_main_loop for k in ran.kernels for site in k.sites)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["whole tiles", "few rows", "chain with a softmax", "causal attention"])
def test_results_of_two_bytes_are_written_in_whole_sectors(name: str, dtype: str, tmp_path: Path) -> None:
    """Tensor cores give a thread two neighbouring elements, with which the threads of a row would write half a
    sector."""
    _, ran = _simulated(name, dtype, "cuda:h200", tmp_path)
    for kernel in ran.kernels:
        assert kernel.global_writes.coalescing == 1
        assert kernel.shared_reads.conflicts == 0


@pytest.mark.parametrize("target", ["cuda:h200", "cuda:a100"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_cut_tiles_are_read_where_they_lie(dtype: str, target: str, tmp_path: Path) -> None:
    """Another copy, element by element, would have bank conflicts."""
    _, ran = _simulated("chain, tiles cut at the border", dtype, target, tmp_path)
    (kernel,) = ran.kernels
    assert kernel.shared_reads.conflicts == kernel.shared_writes.conflicts == 0


def test_a_nest_beside_contractions_reads_what_lies_together(tmp_path: Path) -> None:
    """This is a rotary embedding of keys, whose lanes are those of the scores: along the sequence."""
    model = transformers.llama_block(
        LlamaOptions(hidden=128, heads=2, key_value_heads=2, sequence=64, intermediate=96)
    )
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    for kernel in simulate_program(program, tmp_path, random_inputs(model, 0)).kernels:
        assert kernel.global_reads.coalescing > 0.9
        assert kernel.shared_reads.conflicts == 0


def test_a_transpose_is_taken_by_who_reads_it(tmp_path: Path) -> None:
    """Keys are written along a head, and not along lines of 49, with one element in each sector."""
    model = windows(24)
    inputs = random_inputs(model, 0)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, grid_sync=False)
    assert program.plan.kernels[1].groups[0].ops[0].op == "linalg.transpose"
    ran = simulate_program(program, tmp_path, inputs)
    assert ran.kernels[0].global_writes.coalescing == 1
    assert ran.outputs is not None
    assert relative_error(ran.outputs[0], float64_reference(model, inputs)[0]) <= model_tolerance(model)


def test_an_output_that_grows_is_written_once(tmp_path: Path) -> None:
    """Blocks of the middle dim add to it in registers, even if nothing else is computed from it."""
    _, ran = _simulated("chain, blocks of the middle dim", "f32", "cuda:h200", tmp_path, grid_sync=False)
    (kernel,) = ran.kernels
    assert kernel.global_writes.bytes == 12 * 192 * 64 * 4


@pytest.mark.parametrize("number", range(1, 13))
def test_chimeras_chains_with_a_softmax_are_one_kernel(number: int) -> None:
    """With a kernel for each product and one for the softmax, scores would be written and read twice."""
    model = WORKLOADS[f"g{number}-softmax-chain"].build()
    (kernel,) = tilewright.compile(model, "cuda:h200").kernels
    shapes = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input]
    (*batch, rows, _), (*_, columns, _) = shapes[:2]
    scores = 4 * np.prod([*batch, rows, columns])
    assert kernel.predicted_bytes <= 0.6 * (kernel.predicted_bytes + 4 * scores)
