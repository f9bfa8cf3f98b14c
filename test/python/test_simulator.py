"""The simulated device counts what correct kernels read, write and wait for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tilewright
from simulator_cases import CORRECT, INPUTS
from tilewright.errors import InputError
from tilewright.records.signature import Array
from tilewright.simulator.device import L2, AccessCounts, simulate

LAYER_NORM = (INPUTS / "layer-norm.mlir").read_text()


def counts(requests: int, bytes: int, sectors: int = 0, ideal: int = 0, conflicts: int = 0) -> AccessCounts:
    return AccessCounts(requests, bytes, sectors, ideal, conflicts)


def test_elementwise_reads_and_writes_each_byte_once() -> None:
    x = np.arange(1000, dtype=np.float32)
    y = np.zeros_like(x)
    report = simulate(CORRECT, "scale", (8,), [x, y], [1000], empty=[1])
    report.check()
    np.testing.assert_array_equal(y, 2 * x)
    # 1000 elements take 31 full warps, one of 8 lanes, and 125 sectors.
    assert report.global_reads == report.global_writes == counts(32, 4000, 125, 125)
    assert (report.dram_bytes_read, report.dram_bytes_written) == (4000, 4000)
    assert [binding.sectors_read for binding in report.bindings] == [125, 0]
    assert report.bindings[1].bytes_never_written == 0
    assert report.divergent_block_visits == 1  # the warp with 8 lanes, in the body
    # The body has a multiplication, the index, two addresses, the comparison, and three branches.
    assert report.instructions.floating == 32
    assert report.instructions.global_memory == 64
    assert report.instructions.control == 3 * 32


def test_unaligned_rows_are_not_coalesced() -> None:
    x = np.arange(1001, dtype=np.float32)
    y = np.zeros(32, np.float32)
    strided = {stride: _strided(stride, x, y) for stride in (1, 2, 8, 31)}
    assert strided == {
        1: counts(1, 128, 4, 4),
        2: counts(1, 128, 8, 4),
        8: counts(1, 128, 32, 4),
        31: counts(1, 128, 32, 4),
    }
    assert strided[2].coalescing == 0.5


def _strided(stride: int, x: Array, y: Array) -> AccessCounts:
    report = simulate(CORRECT, "strided", (1,), [x, y], [stride], empty=[1])
    report.check()
    np.testing.assert_array_equal(y, x[: 32 * stride : stride])
    return report.global_reads


def test_lanes_that_read_the_same_bytes_share_a_sector() -> None:
    x, y = np.ones(8, np.float32), np.zeros(32, np.float32)
    report = simulate(CORRECT, "strided", (1,), [x, y], [0])
    assert report.global_reads == counts(1, 128, 1, 1)


def test_warp_reduction_by_shuffles() -> None:
    x = np.random.default_rng(0).integers(0, 9, 256).astype(np.float32)
    y = np.zeros(8, np.float32)
    report = simulate(CORRECT, "warp_sums", (4,), [x, y], empty=[1])
    report.check()
    np.testing.assert_array_equal(y, x.reshape(8, 32).sum(1))
    assert report.shuffles == 8 * 5
    assert report.instructions.shuffle == 8 * 5
    assert report.block_barriers == report.shared_reads.bytes == 0
    assert report.global_writes == counts(8, 32, 8, 8)


def test_block_reduction_through_shared_memory() -> None:
    x = np.random.default_rng(0).integers(0, 9, 5 * 128).astype(np.float32)
    y = np.zeros(5, np.float32)
    report = simulate(CORRECT, "block_sums", (5,), [x, y], empty=[1])
    report.check()
    np.testing.assert_array_equal(y, x.reshape(5, 128).sum(1))
    assert report.block_barriers == 5 * 2
    assert report.instructions.barrier == 5 * 4 * 2  # barriers of warps
    assert report.shared_writes == counts(5 * 4, 5 * 4 * 4)
    assert report.shared_reads == counts(5 * 4 * 4, 5 * 128 * 4 * 4)
    assert report.shared_bytes_per_block == 16


@pytest.mark.parametrize("host_threads", [1, 2, 3])
def test_two_phases_around_a_grid_barrier(host_threads: int) -> None:
    """All blocks are resident; the data between the phases stays in the L2, where all blocks read it."""
    x = np.random.default_rng(0).integers(0, 9, 128 * 128).astype(np.float32)
    scratch, y = np.zeros(128, np.float32), np.zeros_like(x)
    report = simulate(CORRECT, "add_sum", (128,), [x, scratch, y], empty=[1, 2], host_threads=host_threads)
    report.check()
    np.testing.assert_array_equal(y, x + x.sum())
    assert report.grid_barriers == 1
    assert report.block_barriers == 128 * 4
    assert report.bindings[1].sectors_written == 128
    assert report.bindings[1].sectors_read == 128 * 128 * 4 // 32
    # Nothing of the scratch buffer comes from memory, because this kernel wrote it.
    assert report.dram_bytes_read == x.nbytes
    assert report.dram_bytes_written == y.nbytes + scratch.nbytes


@pytest.mark.parametrize("stride, conflicts", [(1, 0), (2, 1), (4, 3), (32, 31), (33, 0), (0, 0)])
def test_bank_conflicts(stride: int, conflicts: int) -> None:
    y = np.zeros(32, np.int32)
    report = simulate(CORRECT, "banks", (1,), [y], [stride, 1023], empty=[0], dynamic_shared_bytes=4096)
    report.check()
    np.testing.assert_array_equal(y, np.arange(32) * stride & 1023)
    assert report.shared_writes == counts(32, 4096)
    assert report.shared_reads == counts(1, 128, conflicts=conflicts)
    assert report.warp_barriers == 1


@pytest.mark.parametrize("pitch, passes", [(33, 0), (34, 1), (36, 3)])
def test_conflicts_in_loops_that_carry_sums_are_told_apart(pitch: int, passes: int) -> None:
    y = np.zeros(32, np.float32)
    report = simulate(CORRECT, "square_sums", (1,), [y], [pitch], empty=[0], dynamic_shared_bytes=32 * 36 * 4)
    report.check()
    np.testing.assert_array_equal(y, np.full(32, 32 * 4 + 2))
    assert report.shared_writes.conflicts == 0
    assert report.main_loop_conflicts == 32 * passes
    assert report.conflicts == 33 * passes
    assert [site.is_in_main_loop for site in report.sites] == [False, True, False, False]


def test_atomics_of_all_blocks_add_up() -> None:
    y = np.zeros(1, np.int32)
    report = simulate(CORRECT, "count", (64,), [y])
    report.check()
    assert y[0] == 4096 * 4095 // 2
    assert report.global_atomics.requests == 128


def test_a_lonely_lane_is_divergence() -> None:
    report = simulate(CORRECT, "lonely_lane", (1,), constants=[100])
    assert report.divergent_block_visits == 100
    assert report.block_visits == 102
    # The entry and the exit have 32 lanes; an iteration is an addition, a comparison and a branch of one lane.
    entry_and_exit = report.warp_instructions - 300
    assert report.thread_instructions == 32 * entry_and_exit + 300


@pytest.mark.parametrize("l2_bytes, again", [(64, 128), (128, 1)])
def test_what_does_not_fit_the_l2_comes_from_memory_again(l2_bytes: int, again: int) -> None:
    """128 blocks run side by side, and every warp reads the same four sectors of scratch as those of the other blocks.

    If four sectors fit, all blocks read them once together; if two fit, each block reads them on its own.
    """
    target = tilewright.Target.lookup("cuda:h200")
    levels = [
        dataclasses.replace(level, capacity_bytes=l2_bytes) if level.name == "L2" else level
        for level in target.levels
    ]
    x = np.ones(128 * 128, np.float32)
    scratch, y = np.zeros(128, np.float32), np.zeros_like(x)
    machine = dataclasses.replace(target, levels=tuple(levels))
    report = simulate(CORRECT, "add_sum", (128,), [x, scratch, y], target=machine)
    report.check()
    assert report.dram_bytes_read == x.nbytes + again * scratch.nbytes


def test_kernels_that_share_an_l2_find_what_others_left() -> None:
    """The second kernel reads what the first wrote, and overwrites it: each sector goes to memory once, in the end."""
    target = tilewright.Target.lookup("cuda:h200")
    x, y = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    l2, at = L2(target), {"x": 4096, "y": 8192}
    reports = [
        simulate(CORRECT, "scale", (8,), [x, y], [1024], l2=l2, addresses=[at["x"], at["y"]]),
        simulate(CORRECT, "scale", (8,), [y, x], [1024], l2=l2, addresses=[at["y"], at["x"]]),
        simulate(CORRECT, "scale", (8,), [x, y], [1024], l2=l2, addresses=[at["x"], at["y"]]),
    ]
    np.testing.assert_array_equal(y, 8 * np.ones_like(y))
    past = [(report.dram_bytes_read, report.dram_bytes_written) for report in l2.write_back(reports)]
    assert past == [(4096, 0), (0, 4096), (0, 4096)]


@pytest.mark.parametrize(
    ("addresses", "why"),
    [
        ([], "0 addresses for 2 arrays"),
        ([4096], "1 addresses for 2 arrays"),
        ([4096, 8208], "array 1 cannot lie at 8208"),
        ([0, 8192], "array 0 cannot lie at 0"),
        ([4096, 1 << 40], "array 1 cannot lie at 1099511627776"),
    ],
)
def test_addresses_that_no_array_can_have_are_refused(addresses: list[int], why: str) -> None:
    x, y = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    l2 = L2(tilewright.Target.lookup("cuda:h200"))
    with pytest.raises(InputError, match=why):
        simulate(CORRECT, "scale", (8,), [x, y], [1024], l2=l2, addresses=addresses)


def test_an_l2_is_of_one_target_and_of_all_its_kernels() -> None:
    x, y = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    l2 = L2(tilewright.Target.lookup("cuda:a100"))
    with pytest.raises(InputError, match="L2 of"):
        simulate(CORRECT, "scale", (8,), [x, y], [1024], l2=l2, addresses=[4096, 8192])
    with pytest.raises(InputError, match="1 reports of 0 kernels"):
        l2.write_back([simulate(CORRECT, "scale", (8,), [x, y], [1024])])


def test_layer_norm() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 768)).astype(np.float32)
    gamma, beta = rng.standard_normal((2, 768)).astype(np.float32)
    y = np.zeros_like(x)
    report = simulate(LAYER_NORM, grid=(512,), arrays=[x, gamma, beta, y], empty=[3])
    report.check()
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    expected = centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * gamma + beta
    # Tolerance: sums of 768 in f32 trees, which take a few roundings of values up to about 15
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5)
    assert report.dram_bytes_read == x.nbytes + gamma.nbytes + beta.nbytes
    assert report.dram_bytes_written == y.nbytes
    assert report.global_writes == counts(512 * 6, y.nbytes, y.nbytes // 32, y.nbytes // 32)
    assert report.global_reads.coalescing == 1
    assert report.shared_reads.conflicts == report.shared_writes.conflicts == 0
    assert report.block_barriers == 512 * 4
    assert report.shuffles == 512 * 6 * 10


def test_the_report_does_not_depend_on_the_host() -> None:
    def run(host_threads: int) -> dict[str, object]:
        x, y = np.ones(5 * 128, np.float32), np.zeros(5, np.float32)
        data = simulate(CORRECT, "block_sums", (5,), [x, y], host_threads=host_threads).to_json()
        return {name: value for name, value in data.items() if not name.endswith("Seconds")}

    assert run(1) == run(2) == run(4)
