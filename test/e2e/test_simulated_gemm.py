"""Each field of a contraction's `gemm` is emitted exactly: shared memory and what threads read from it follow from the
numbers in the plan, and the result stays right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from tilewright.records.plan import Gemm, GroupPlan
from tilewright.records.signature import Array
from tilewright.reference.oracle import float64_reference
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)

M, K, N = 64, 192, 128
TILE_M, TILE_N = 32, 64
_KINDS = {"f32": (TensorProto.FLOAT, np.float32, 1e-5), "f16": (TensorProto.FLOAT16, np.float16, 1e-3)}
# The result has one rounding; sums are in f32, regrouped, of about two hundred terms around one.


def product(element: str) -> onnx.ModelProto:
    """Returns x @ w.T, so that K is contiguous in both operands."""
    kind = _KINDS[element][0]
    g = GraphBuilder("product")
    w = g.op("Transpose", g.input("w", (N, K), kind), perm=[1, 0])
    g.output(g.op("MatMul", g.input("x", (M, K), kind), w), (M, N), kind)
    return g.build()


@dataclass(frozen=True)
class Ran:
    gemm: Gemm
    report: Any


def run(element: str, target: str, kernel: str, threads: int, gemm: Gemm, folder: Path) -> Ran:
    """Compiles the product for tiles of TILE_M x TILE_N with this gemm and checks its numbers."""
    model = product(element)
    plan = tilewright.compile(model, target).plan
    assert plan is not None
    ((part,),) = ([*kernel.groups] for kernel in plan.kernels)
    part.threads = threads
    _cut(part)
    (op,) = (op for op in part.ops if op.micro_kernel)
    op.micro_kernel, op.gemm, op.tilings = kernel, gemm, []
    program = tilewright.compile(model, target, plan=plan, dump_dir=folder)
    assert program.plan is not None
    (carried,) = (op.gemm for kernel in program.plan.kernels for op in kernel.groups[0].ops if op.gemm)
    rng, (_, dtype, tolerance) = np.random.default_rng(7), _KINDS[element]
    inputs: list[Array] = [rng.standard_normal(shape).astype(dtype) for shape in ((N, K), (M, K))]
    ran = simulate_program(program, folder, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    error = ran.outputs[0].astype(np.float64).reshape(expected.shape) - expected
    assert np.abs(error).max() <= tolerance * np.abs(expected).max()
    (report,) = ran.kernels
    return Ran(carried, report)


def _cut(part: GroupPlan) -> None:
    for dim, size in zip(part.grid, (TILE_M, TILE_N), strict=True):
        part.tiles[dim] = size
    part.workgroups = (M // TILE_M) * (N // TILE_N)


def _gemm(**fields: Any) -> Gemm:
    return Gemm(**{"m": 2, "n": 2, "k_slices": 1, "step": 32, "stages": 3, **fields})


def _shared_bytes(gemm: Gemm, element_bytes: int) -> int:
    """Bytes of the slots, each rounded up to 128 bytes, or of the accumulators that slices of K add up."""
    slots = gemm.stages * gemm.step * element_bytes * (TILE_M + TILE_N)
    return max(slots, (gemm.k_slices - 1) * TILE_M * TILE_N * 4)


WARPS: dict[str, Gemm] = {
    "as usual": _gemm(),
    "two stages": _gemm(stages=2),
    "five stages": _gemm(stages=5),
    "short steps": _gemm(step=16),
    "long steps": _gemm(step=64),
    "units along M": _gemm(m=2, n=1),
    "units along N": _gemm(m=1, n=4),
    "slices of K": _gemm(m=2, n=1, k_slices=2, step=64),
    "copies of 4 bytes": _gemm(lhs_copy=4),
    "copies of 8 bytes": _gemm(rhs_copy=8),
    "copies of elements": _gemm(lhs_copy=2, rhs_copy=2),
}


@pytest.mark.parametrize("target", ["cuda:h200", "cuda:a100"])
@pytest.mark.parametrize("name", WARPS)
def test_warps_compute_what_the_plan_says(name: str, target: str, tmp_path: Path) -> None:
    gemm = WARPS[name]
    ran = run("f16", target, "mma_sync-16x8", 128, gemm, tmp_path)
    assert ran.gemm == gemm
    assert ran.report.shared_bytes_per_block == _shared_bytes(gemm, 2)


def test_threads_copy_as_many_bytes_at_once_as_the_plan_says(tmp_path: Path) -> None:
    """Copies of half the bytes are twice as many, for the same bytes."""
    wide, narrow = (
        run("f16", "cuda:a100", "mma_sync-16x8", 128, _gemm(lhs_copy=width), tmp_path / str(width)).report
        for width in (16, 8)
    )
    copies = (M * N // (TILE_M * TILE_N)) * TILE_M * K * 2 // 16  # of 16 bytes, of all threads
    more = narrow.instructions.global_memory - wide.instructions.global_memory
    assert more * 32 == copies
    assert narrow.global_reads.bytes == wide.global_reads.bytes


THREADS: dict[str, Gemm] = {
    "as usual": _gemm(m=8, n=16, step=16, stages=2),
    "four stages": _gemm(m=8, n=16, step=16, stages=4),
    "short steps": _gemm(m=8, n=16, step=8, stages=2),
    "long steps": _gemm(m=8, n=16, step=32, stages=2),
    "units along M": _gemm(m=32, n=4, step=16, stages=2),
    "units along N": _gemm(m=4, n=32, step=16, stages=2),
    "slices of K": _gemm(m=8, n=8, k_slices=2, step=16, stages=2),
}


@pytest.mark.parametrize("name", THREADS)
def test_threads_compute_what_the_plan_says(name: str, tmp_path: Path) -> None:
    gemm = THREADS[name]
    ran = run("f32", "cuda:a100", "fma-8x8", 128, gemm, tmp_path)
    assert ran.gemm == gemm
    assert ran.report.shared_bytes_per_block == _shared_bytes(gemm, 4)


def test_what_warps_read_from_shared_memory_follows_from_their_units(tmp_path: Path) -> None:
    """Each of the four warps reads the rows and columns of one unit once; with fewer units than warps, some read the
    same."""
    read = {
        (m, n): run("f16", "cuda:h200", "mma_sync-16x8", 128, _gemm(m=m, n=n), tmp_path / f"{m}{n}").report
        for m, n in ((2, 2), (2, 1), (1, 2))
    }
    tiles = (M // TILE_M) * (N // TILE_N)
    for (m, n), report in read.items():
        assert report.shared_reads.bytes == tiles * K * 2 * 4 * (TILE_M // m + TILE_N // n)


WARPGROUPS: dict[str, Gemm] = {
    "two stages": _gemm(m=1, n=1, step=64, stages=2),
    "three stages": _gemm(m=1, n=1, step=64, stages=3),
    "steps that overlap": _gemm(m=1, n=1, step=64, stages=5),
    "short steps": _gemm(m=1, n=1, step=32, stages=4),
}


@pytest.mark.parametrize("name", WARPGROUPS)
def test_warpgroups_compute_what_the_plan_says(name: str, tmp_path: Path) -> None:
    gemm = WARPGROUPS[name]
    ran = run("f16", "cuda:h200", "wgmma-64x8", 128, gemm, tmp_path)
    assert ran.gemm == gemm
    barriers = 8 * gemm.stages  # one mbarrier for each stage
    slots = gemm.stages * gemm.step * 2 * (64 + TILE_N)  # descriptors address all rows of the instruction
    assert ran.report.shared_bytes_per_block == slots + barriers


def test_a_gemm_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tilewright.PlanError, match=r"gemm: warpgroups .* do not slice K"):
        run("f16", "cuda:h200", "wgmma-64x8", 128, _gemm(m=1, n=1, k_slices=2, step=64), tmp_path)
