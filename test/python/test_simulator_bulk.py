"""Bulk copies that complete on an mbarrier, on the simulated device: their results, and every misuse."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tilewright
from tilewright.records.signature import Array
from tilewright.simulator.device import SimulationReport, simulate

TEXT = (Path(__file__).resolve().parents[1] / "simulator" / "Inputs" / "bulk.mlir").read_text()


def run(text: str) -> tuple[SimulationReport, Array]:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    return simulate(text, "copies", (1,), [x, y], empty=[1]), y


def without(*names: str) -> str:
    """Returns the kernel without the lines of these names."""
    text = TEXT
    for name in names:
        text, count = re.subn(rf"\n.* // {name}(?=\n)", "", text)
        assert count == 1
    return text


def with_changed(name: str, old: str, new: str) -> str:
    (line,) = re.findall(rf"\n.* // {name}(?=\n)", TEXT)
    assert old in line
    return TEXT.replace(line, line.replace(old, new))


def test_what_a_bulk_copy_brings_is_there_after_the_wait() -> None:
    report, y = run(TEXT)
    report.check()
    np.testing.assert_array_equal(y, np.arange(64))
    assert report.global_reads.bytes == 256
    assert report.global_reads.sectors == 8


def test_a_fence_behind_the_barrier_is_that_of_any_thread() -> None:
    report, y = run(without("fence").replace("// barrier", "\n    nvvm.fence.mbarrier.init"))
    report.check()
    np.testing.assert_array_equal(y, np.arange(64))


_HALF = TEXT.replace("    %ticks", "    %half = llvm.mlir.constant(128 : i32) : i32\n    %ticks")
_MEETS = "%all = llvm.mlir.constant(-1 : i32) : i32\n    nvvm.bar.warp.sync %all : i32\n"


def one_warp(text: str) -> str:
    """Returns the kernel with 32 threads, which synchronise before they read."""
    return text.replace("i32: 64", "i32: 32").replace("    %own", f"    {_MEETS}    %own")


FOUND = {
    "no wait": (
        one_warp(without("wait")),
        "unfinished: .*reads byte .* of shared @tile, which nvvm.cp.async.bulk.* still fills",
    ),
    "waits for the phase before": (
        one_warp(with_changed("wait", "%zero", "%one")),
        "(unfinished: .*wait for the mbarrier|barrier: .*never completes)",
    ),
    "a barrier of the block instead of the wait": (
        re.sub(r"nvvm\.mbarrier\.try_wait.*// wait", "nvvm.barrier0", TEXT),
        "unfinished: .*reads byte",
    ),
    "only one thread waits": (
        one_warp(
            with_changed("wait", "nvvm", "llvm.cond_br %leads, ^waits, ^reads\n  ^waits:\n    nvvm").replace(
                "i32, i32 // wait", "i32, i32 // wait\n    llvm.br ^reads\n  ^reads:"
            )
        ),
        "unfinished: .*reads byte",
    ),
    "writes over it": (
        with_changed("wait", "nvvm", "llvm.store %zero, %tile : i32, !llvm.ptr<3>\n    nvvm"),
        "(unfinished: .*writes byte|race: )",
    ),
    "no fence": (without("fence"), "unfenced: .*no fence lies between"),
    "a fence of another thread, without a barrier before it": (
        without("fence").replace(
            "    nvvm.barrier0",
            '    %other = llvm.icmp "eq" %t, %one : i32\n    llvm.cond_br %other, ^fences, ^meets\n'
            "  ^fences:\n    nvvm.fence.mbarrier.init\n    llvm.br ^meets\n  ^meets:\n    nvvm.barrier0",
        ),
        "unfenced: .*no fence lies between",
    ),
    "no barrier behind the initialisation": (without("barrier"), "(race|never-written): .*mbarrier"),
    "expects too little": (
        _HALF.replace("expect_tx %full, %bytes", "expect_tx %full, %half"),
        "barrier: .*1 of 1 have arrived, 128 bytes are expected and copies bring 256",
    ),
    "no copy": (without("copy"), "barrier: .*256 bytes are expected and copies bring 0"),
    "nobody arrives": (without("arrive"), "barrier: .*0 of 1 have arrived"),
    "is given up in the middle of a phase": (
        re.sub(r"nvvm\.cp\.async\.bulk.*// copy", "nvvm.mbarrier.inval %full : !llvm.ptr<3>", TEXT),
        "unfinished: .*invalidated in the middle of a phase",
    ),
    "is used where it was given up": (
        with_changed("wait", "nvvm", "nvvm.mbarrier.inval %full : !llvm.ptr<3>\n    nvvm"),
        "never-written: .*no mbarrier was initialised here",
    ),
    "nobody waits": (without("wait", "read", "write"), "unfinished: .*the block ends"),
    "source not aligned": (
        with_changed(
            "copy",
            "nvvm.cp.async.bulk.shared.cluster.global %tile, %x",
            "%p = llvm.getelementptr %x[%one] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32\n"
            "    nvvm.cp.async.bulk.shared.cluster.global %tile, %p",
        ),
        "misaligned: .*not a multiple of 16",
    ),
    "more than there is": (
        TEXT.replace("%bytes = llvm.mlir.constant(256", "%bytes = llvm.mlir.constant(512"),
        "out-of-bounds: ",
    ),
}


@pytest.mark.parametrize("bug", FOUND)
def test_finds(bug: str) -> None:
    text, pattern = FOUND[bug]
    report, _ = run(text)
    (fault,) = report.faults
    assert re.match(pattern, str(fault)), str(fault)


def test_refuses_parts_of_16_bytes() -> None:
    with pytest.raises(tilewright.SimulationError, match="multiple of 16"):
        run(TEXT.replace("%bytes = llvm.mlir.constant(256", "%bytes = llvm.mlir.constant(24"))
