"""The simulated device: results and counts of correct kernels, and the location of every kind of bug."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
import tilewright
from click.testing import CliRunner
from tilewright.cli.main import cli
from tilewright.errors import InputError
from tilewright.records.signature import Array
from tilewright.simulator.device import L2, AccessCounts, SimulationReport, simulate

INPUTS = Path(__file__).resolve().parents[1] / "simulator" / "Inputs"
CORRECT = (INPUTS / "correct.mlir").read_text()
BUGS = (INPUTS / "bugs.mlir").read_text()
LAYER_NORM = (INPUTS / "layer-norm.mlir").read_text()


def counts(requests: int, bytes: int, sectors: int = 0, ideal: int = 0, conflicts: int = 0) -> AccessCounts:
    return AccessCounts(requests, bytes, sectors, ideal, conflicts)


# ---- counts


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


# ---- faults

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


# ---- refusals


def test_refuses_a_grid_that_cannot_be_resident() -> None:
    arrays = [np.zeros(133 * 128, np.float32) for _ in range(3)]
    with pytest.raises(tilewright.SimulationError, match="of its 133 blocks only 132 are sure to run"):
        simulate(CORRECT, "add_sum", (133,), arrays)


def test_refuses_huge_grids_and_blocks() -> None:
    x = np.zeros(32, np.float32)
    with pytest.raises(tilewright.SimulationError, match="more than 4000000 blocks"):
        simulate(CORRECT, "scale", (2**31 - 1, 2**31 - 1), [x, x], [1])
    with pytest.raises(tilewright.SimulationError, match="at most 1024 threads"):
        simulate(CORRECT, "scale", (1,), [x, x], [1], block=(1 << 16, 1 << 16))
    with pytest.raises(tilewright.SimulationError, match="a block of 256 threads is more than the 128"):
        simulate(CORRECT, "scale", (1,), [x, x], [1], block=(256,))


def test_refuses_more_shared_memory_than_there_is() -> None:
    with pytest.raises(
        tilewright.SimulationError, match="a block needs 300000 bytes of shared memory; cuda:h200 has"
    ):
        simulate(CORRECT, "banks", (1,), [np.zeros(32, np.int32)], [1, 1], dynamic_shared_bytes=300000)


def test_refuses_wrong_arguments() -> None:
    x = np.zeros(32, np.float32)
    with pytest.raises(
        tilewright.SimulationError, match="takes 2 buffers and 1 constants; the launch has 1 and 0"
    ):
        simulate(CORRECT, "scale", (1,), [x])
    with pytest.raises(tilewright.SimulationError, match="has no kernel 'scales'; it has scale, warp_sums"):
        simulate(CORRECT, "scales", (1,), [x])
    with pytest.raises(tilewright.SimulationError, match="several kernels, so one must be named"):
        simulate(CORRECT)
    with pytest.raises(tilewright.InputError, match="contiguous"):
        simulate(CORRECT, "scale", (1,), [x[::2], x], [1])
    with pytest.raises(tilewright.InputError, match="grid"):
        simulate(CORRECT, "scale", (0,), [x, x], [1])
    with pytest.raises(tilewright.InputError, match="does not fit 32 bits"):
        simulate(CORRECT, "scale", (1,), [x, x], [1 << 31])
    with pytest.raises(tilewright.TargetError, match="is not a GPU"):
        simulate(CORRECT, "scale", (1,), [x, x], [1], "x86-64-avx2")


def test_assembly_of_no_instruction_passes_its_operand_on() -> None:
    x = np.zeros(32, np.int32)
    simulate(
        """
llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %same = llvm.inline_asm has_side_effects "", "=r,0" %thread : (i32) -> i32
  %to = llvm.getelementptr %x[%same] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %same, %to : i32, !llvm.ptr<1>
  llvm.return
}""",
        arrays=[x],
    )
    assert (x == np.arange(32)).all()


def test_refuses_what_is_not_simulated() -> None:
    def kernel(body: str) -> str:
        return (
            "llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {\n"
            f"  {body}\n  llvm.return\n}}\n"
        )

    x = np.zeros(32, np.float32)
    with pytest.raises(
        tilewright.SimulationError, match=r"kernel:2:3: 'nvvm.breakpoint' op is not simulated"
    ):
        simulate(kernel("nvvm.breakpoint"), arrays=[x])
    with pytest.raises(tilewright.SimulationError, match=r"'llvm.inline_asm' op is not simulated"):
        simulate(kernel('llvm.inline_asm "trap;", "" : () -> ()'), arrays=[x])
    with pytest.raises(tilewright.SimulationError, match=r"'gpu.barrier' op is not in the llvm or nvvm"):
        simulate(kernel("gpu.barrier"), arrays=[x])
    with pytest.raises(tilewright.SimulationError, match=r"kernel:2:3: invalid SSA name"):
        simulate(kernel("%"), arrays=[x])
    call = "%c = llvm.call @__nv_frob() : () -> f32"
    with pytest.raises(tilewright.SimulationError, match=r"'__nv_frob' is called, but has no body"):
        simulate("llvm.func @__nv_frob() -> f32\n" + kernel(call), arrays=[x])


# ---- the command


def test_command(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.float32))
    module = str(INPUTS / "correct.mlir")
    line = ["simulate", module, "--kernel=scale", "--grid=1", f"--binding={tmp_path}/x.npy"]
    line += ["--binding=64:f32:empty", "--constant=64"]
    result = CliRunner().invoke(cli, [*line, f"--save=1:{tmp_path}/y.npy", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["globalReads"]["sectors"] == 8
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), 2 * np.arange(64))
    assert "past the L2: 256 bytes read, 256 written" in CliRunner().invoke(cli, line).output


def test_command_fails_on_a_bug() -> None:
    module = str(INPUTS / "bugs.mlir")
    line = ["simulate", module, "--kernel=misaligned", "--binding=8:f32:1", "--binding=8:f32:empty"]
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 1
    assert "misaligned: llvm.load at planted" in result.output


def test_command_refuses_wrong_bindings() -> None:
    module = str(INPUTS / "correct.mlir")
    for wrong in ("8:f31:0", "no.npy", "f32"):
        result = CliRunner().invoke(cli, ["simulate", module, f"--binding={wrong}"])
        assert result.exit_code == 1
        assert result.output.startswith("error: ")
        assert result.output.count("\n") == 1
