"""Clusters on the simulated device: blocks that write each other's shared memory, and the faults of doing so
wrongly."""

from __future__ import annotations

import numpy as np
import pytest
from tilewright.errors import TilewrightError
from tilewright.simulator.device import SimulationReport, simulate

BLOCKS, THREADS = 8, 64

# Each block writes its elements to the block of the next rank and stores those that it received.
PREFIX = """
llvm.mlir.global internal @got() {addr_space = 3 : i32, alignment = 64 : i64} : !llvm.array<64 x f32>
llvm.func @hand_on(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {nvvm.kernel,
    nvvm.maxntid = array<i32: 64, 1, 1>, nvvm.cluster_dim = array<i32: 4, 1, 1>} {
  %one = llvm.mlir.constant(1 : i32) : i32
  %three = llvm.mlir.constant(3 : i32) : i32
  %size = nvvm.read.ptx.sreg.ntid.x : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %start = llvm.mul %block, %size : i32
  %i = llvm.add %start, %thread : i32
  %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
  %after = llvm.add %rank, %one : i32
  %next = llvm.and %after, %three : i32
  %got = llvm.mlir.addressof @got : !llvm.ptr<3>
  %own = llvm.getelementptr %got[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %from = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %to = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %v = llvm.load %from : !llvm.ptr<1> -> f32
"""
BARRIER = "nvvm.cluster.arrive\n nvvm.cluster.wait\n"
MAP = "%there = nvvm.mapa %own, %next : !llvm.ptr<3> -> !llvm.ptr<7>\n"
WRITE = MAP + "llvm.store %v, %there : f32, !llvm.ptr<7>\n"
READ = "%w = llvm.load %own : !llvm.ptr<3> -> f32\n llvm.store %w, %to : f32, !llvm.ptr<1>\n"
END = "llvm.return\n}\n"


def run(*body: str, blocks: int = BLOCKS) -> tuple[SimulationReport, np.ndarray, np.ndarray]:
    x = np.arange(blocks * THREADS, dtype=np.float32)
    y = np.zeros_like(x)
    report = simulate("".join((PREFIX, *body, END)), "hand_on", (blocks,), [x, y])
    return report, x.reshape(-1, 4, THREADS), y.reshape(-1, 4, THREADS)


def test_blocks_of_a_cluster_write_each_others_shared_memory() -> None:
    report, x, y = run(BARRIER, WRITE, BARRIER, READ)
    report.check()
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=1))
    assert report.cluster_barriers == 2 * (BLOCKS // 4)
    assert report.block_barriers == 0
    assert report.shared_writes.bytes == report.shared_reads.bytes == BLOCKS * THREADS * 4
    assert report.shared_writes.conflicts == 0


def test_arriving_early_and_waiting_late_is_a_barrier() -> None:
    """Data that a thread wrote before it arrived is visible to threads that have waited."""
    early = "nvvm.cluster.arrive.relaxed\n"
    report, x, y = run(
        early, "nvvm.cluster.wait\n", WRITE, "nvvm.cluster.arrive\n", "nvvm.cluster.wait\n", READ
    )
    report.check()
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=1))


@pytest.mark.parametrize(
    "body, kind, what",
    [
        ((WRITE, BARRIER, READ), "race", "may not have begun"),
        ((BARRIER, WRITE, READ), "never-written", "nobody has written"),
        ((BARRIER, WRITE, "nvvm.barrier0\n", READ), "race", "no barrier between"),
        (
            (BARRIER, "nvvm.cluster.arrive\n", WRITE, "nvvm.cluster.wait\n", READ),
            "race",
            "no barrier between",
        ),
        (
            (BARRIER, WRITE, "nvvm.cluster.arrive\n", READ, "nvvm.cluster.wait\n"),
            "never-written",
            "nobody has written",
        ),
        # A block reads its neighbour's elements while the neighbour overwrites them.
        (
            (
                "llvm.store %v, %own : f32, !llvm.ptr<3>\n",
                BARRIER,
                MAP,
                "%w = llvm.load %there : !llvm.ptr<7> -> f32\n",
                "llvm.store %w, %own : f32, !llvm.ptr<3>\n",
                BARRIER,
            ),
            "race",
            "no barrier between",
        ),
        ((BARRIER, WRITE.replace("%next", "%size"), BARRIER, READ), "out-of-bounds", "no block of rank 64"),
        ((BARRIER, WRITE.replace("%own,", "%to7,"), BARRIER, READ), "out-of-bounds", "which has 256"),
        (("nvvm.cluster.wait\n",), "barrier", "without having arrived"),
        (("nvvm.cluster.arrive\n", "nvvm.cluster.arrive\n"), "barrier", "before it has waited"),
    ],
)
def test_faults(body: tuple[str, ...], kind: str, what: str) -> None:
    beyond = "%to7 = llvm.getelementptr %got[%size] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32\n"
    report, _, y = run(beyond, *body)
    assert [fault.kind for fault in report.faults] == [kind]
    assert what in report.faults[0].message
    assert not y.any()


FIRST_BLOCK_LEAVES = """
  %zero = llvm.mlir.constant(0 : i32) : i32
  %first = llvm.icmp "eq" %rank, %zero : i32
  llvm.cond_br %first, ^leave, ^stay
^leave:
  llvm.return
^stay:
"""


def test_a_block_that_does_not_come_is_missed() -> None:
    report, _, _ = run(FIRST_BLOCK_LEAVES, BARRIER)
    (fault,) = report.faults
    assert fault.kind == "barrier" and "of block (0,0,0) has ended" in fault.message


def test_a_block_that_has_ended_has_no_memory() -> None:
    """The last barrier is missing, so the writer does not know if the other block still exists."""
    report, _, _ = run(BARRIER, FIRST_BLOCK_LEAVES, WRITE)
    assert [fault.kind for fault in report.faults] == ["out-of-bounds"]
    assert "a block that has ended" in report.faults[0].message


def test_grids_are_of_whole_clusters() -> None:
    with pytest.raises(TilewrightError, match="a grid of 6 blocks is not a multiple of the cluster size 4"):
        run(BARRIER, blocks=6)
