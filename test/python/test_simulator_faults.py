"""The simulated device finds every kind of bug, and says where it is."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tilewright
from simulator_cases import INPUTS
from tilewright.simulator.device import SimulationReport, simulate

BUGS = (INPUTS / "bugs.mlir").read_text()


FOUND = {
    "reads_past_the_end": "out-of-bounds: .*byte 1024 of binding 0, which has 1024, by thread .127,0,0. of block .1,",
    "writes_past_the_tile": "out-of-bounds: .*byte 512 of shared @tile, which has 512, by thread .127,",
    "misaligned": "misaligned: .*not a multiple of 16",
    "reads_unwritten_shared": "never-written: .*of shared @tile",
    "reads_unwritten_scratch": "never-written: .*byte 0 of binding 1",
    "barrier_of_some": "barrier: .*never come: thread .64,0,0. of block .0,0,0. has ended",
    "two_barriers": "barrier: .*at another barrier .the other: the other.",
    "shuffle_of_some": "barrier: .*never come: thread .16,0,0. of block .0,0,0. has ended",
    "grid_barrier_of_some": "barrier: .*block .1,0,0. has ended without it",
    "race_in_shared": "race: .*reads byte .* of shared @tile, which another thread writes",
    "overwrites_what_is_read": "race: .* of shared @tile",
    "race_of_blocks": "race: .*binding 1, which another thread writes",
    "reads_of_the_other_block": "race: .*binding 1",
    "divides_by_zero": "trap: .*divided by zero",
    "traps": "trap: ",
    "endless": "endless: .*as many instructions as are allowed",
}


def buggy(kernel: str, host_threads: int = 0) -> SimulationReport:
    x, y = np.ones(256, np.float32), np.zeros(256, np.float32)
    empty = [] if kernel == "reads_of_the_other_block" else [1]
    report = simulate(
        BUGS, kernel, (2,), [x, y], empty=empty, max_instructions=1_000_000, host_threads=host_threads
    )
    assert not y.any()  # arrays keep their content
    return report


def test_every_planted_bug_is_tested() -> None:
    assert set(re.findall(r"llvm.func @(\w+)\(%x", BUGS)) == set(FOUND)


@pytest.mark.parametrize("kernel", FOUND)
def test_finds(kernel: str) -> None:
    (fault,) = buggy(kernel).faults
    assert re.match(FOUND[kernel], str(fault)), str(fault)
    assert "planted" in (fault.location, fault.other_location)
    with pytest.raises(tilewright.SimulationError, match=f"kernel {kernel}: {fault.kind}"):
        buggy(kernel).check()


@pytest.mark.parametrize(
    "address, found",
    [
        # As in a lowered memref, the address goes through a struct, and is still known to belong to the buffer.
        (
            "%s = llvm.mlir.poison : !llvm.struct<(ptr<1>, i64)>\n"
            "%d = llvm.insertvalue %x, %s[0] : !llvm.struct<(ptr<1>, i64)>\n"
            "%p = llvm.extractvalue %d[0] : !llvm.struct<(ptr<1>, i64)>",
            "byte 128 of binding 0, which has 128",
        ),
        # An address that was converted to a number belongs to no buffer.
        (
            "%n = llvm.ptrtoint %x : !llvm.ptr<1> to i64\n%p = llvm.inttoptr %n : i64 to !llvm.ptr<1>",
            "read of 4 bytes outside every buffer",
        ),
    ],
)
def test_knows_the_buffer_of_an_address(address: str, found: str) -> None:
    text = f"""
    llvm.func @k(%x: !llvm.ptr<1>) attributes {{nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>}} {{
      {address}
      %q = llvm.getelementptr %p[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
      %v = llvm.load %q : !llvm.ptr<1> -> f32
      llvm.return
    }}"""
    (fault,) = simulate(text, arrays=[np.zeros(32, np.float32)]).faults
    assert found in fault.message


def test_what_is_found_does_not_depend_on_the_host() -> None:
    for kernel in ("reads_past_the_end", "race_in_shared", "barrier_of_some"):
        assert buggy(kernel, host_threads=1).faults == buggy(kernel, host_threads=2).faults


def test_a_kernel_that_takes_too_long_is_ended() -> None:
    x, y = np.ones(256, np.float32), np.zeros(256, np.float32)
    report = simulate(BUGS, "endless", (2,), [x, y], max_instructions=1 << 60, max_seconds=0.05)
    assert "for as long as is allowed" in str(report.faults[0])
