"""Small matrix products and asynchronous copies on the simulated device: results, counts, every misuse."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tilewright
from tilewright.records.signature import Array
from tilewright.simulator.device import AccessCounts, SimulationReport, simulate

INPUTS = Path(__file__).resolve().parents[1] / "simulator" / "Inputs"
TENSOR = (INPUTS / "tensor.mlir").read_text()
BUGS = (INPUTS / "async-bugs.mlir").read_text()

LANES = np.arange(32)
GROUP, PLACE = LANES // 4, LANES % 4


def fragments(matrix: Array, rows: list[Array], columns: list[Array]) -> Array:
    """Returns the elements that each lane holds, with those of a register adjacent."""
    return np.ascontiguousarray(
        np.stack([matrix[row, column] for row, column in zip(rows, columns, strict=True)], axis=1)
    )


@pytest.mark.parametrize("element", ["f16", "bf16", "tf32"])
def test_multiplies_matrices(element: str) -> None:
    rng = np.random.default_rng(0)
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32}[element]
    together, depth = (1, 8) if element == "tf32" else (2, 16)
    a, b, c = (
        rng.integers(-8, 9, shape).astype(np.float32) / 4 for shape in [(16, depth), (depth, 8), (16, 8)]
    )
    half = depth // 2
    upper, lower = [GROUP] * together, [GROUP + 8] * together
    low = [PLACE * together + i for i in range(together)]
    high = [column + half for column in low]
    sums_at = ([GROUP, GROUP, GROUP + 8, GROUP + 8], [PLACE * 2, PLACE * 2 + 1] * 2)
    result = np.zeros((32, 4), np.float32)
    report = simulate(
        TENSOR,
        f"multiply_{element}",
        (1,),
        [
            fragments(a, upper + lower + upper + lower, low + low + high + high).astype(dtype),
            fragments(b, low + high, [GROUP] * (2 * together)).astype(dtype),
            fragments(c, *sums_at),
            result,
        ],
        empty=[3],
    )
    report.check()
    np.testing.assert_array_equal(
        result, fragments(a @ b + c, *sums_at)
    )  # multiples of 1/4 are exact in any order
    assert report.instructions.tensor == 1


def test_multiplies_bytes() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-128, 128, (16, 32)), rng.integers(0, 256, (32, 8))
    c = rng.integers(-(2**31), 2**31, (16, 8))  # sums wrap around
    low, high = [[PLACE * 4 + i + half for i in range(4)] for half in (0, 16)]
    sums_at = ([GROUP, GROUP, GROUP + 8, GROUP + 8], [PLACE * 2, PLACE * 2 + 1] * 2)
    upper, lower = [GROUP] * 4, [GROUP + 8] * 4
    result = np.zeros((32, 4), np.int32)
    arrays: list[Array] = [
        fragments(a, upper + lower + upper + lower, low + low + high + high).astype(np.int8),
        fragments(b, low + high, [GROUP] * 8).astype(np.uint8),
        fragments(c, *sums_at).astype(np.int32),
        result,
    ]
    simulate(TENSOR, "multiply_s8u8", (1,), arrays, empty=[3]).check()
    np.testing.assert_array_equal(result, fragments(a @ b + c, *sums_at).astype(np.uint32).view(np.int32))


def test_rounds_to_tf32() -> None:
    x = np.ones(32, np.float32)
    x[:5] = 1 + 2.0**-11, 1 + 2.0**-12, -(1 + 3 * 2.0**-11), np.inf, np.nan
    y = np.zeros(32, np.float32)
    simulate(TENSOR, "rounds_to_tf32", (1,), [x, y], empty=[1]).check()
    np.testing.assert_array_equal(y[:5], [1 + 2.0**-10, 1, -(1 + 2.0**-9), np.inf, np.nan])


def test_tf32_reads_ten_bits_of_the_fraction() -> None:
    a = np.zeros((32, 4), np.float32)
    a[:, 0] = 1 + 2.0**-11
    ones, zeros, result = (
        np.ones((32, 2), np.float32),
        np.zeros((32, 4), np.float32),
        np.zeros((32, 4), np.float32),
    )
    simulate(TENSOR, "multiply_tf32", (1,), [a, ones, zeros, result], empty=[3]).check()
    np.testing.assert_array_equal(result[:, 0], 4)


@pytest.mark.parametrize(("kernel", "count"), [("load_matrices", 4), ("load_transposed", 2)])
def test_loads_matrices(kernel: str, count: int) -> None:
    rows = np.arange(32 * 8, dtype=np.uint16).reshape(4, 8, 8)
    result = np.zeros((32, count, 2), np.uint16)
    report = simulate(TENSOR, kernel, (1,), [rows.view(np.uint32), result.view(np.uint32)], empty=[1])
    report.check()
    matrices = rows[:count] if kernel == "load_matrices" else rows[:count].transpose(0, 2, 1)
    np.testing.assert_array_equal(result.transpose(1, 0, 2).reshape(count, 8, 8), matrices)
    # Each lane gives the address of one row, for as many lanes as there are rows.
    assert report.shared_reads == AccessCounts(1, count * 8 * 16, 0, 0, 0)
    assert report.shared_writes == AccessCounts(1, 512, 0, 0, 0)
    assert report.global_reads == AccessCounts(1, 512, 16, 16, 0)


def test_a_copy_fills_up_with_zeros_and_reads_no_more_than_it_says() -> None:
    x, y = np.arange(1, 21, dtype=np.float32), np.ones(32, np.float32)
    report = simulate(TENSOR, "copies_a_part", (1,), [x, y], empty=[1])
    report.check()
    np.testing.assert_array_equal(y, np.pad(x, (0, 12)))
    assert report.global_reads.bytes == 80


FOUND = {
    "reads_without_a_wait": "unfinished: .*reads byte .* of shared @tile, which nvvm.cp.async.* still fills",
    "reads_without_a_commit": "unfinished: .*reads byte .* of shared @tile, which nvvm.cp.async.* still fills",
    "waits_for_too_few_groups": "unfinished: .*reads byte .* of shared @tile, which nvvm.cp.async.* still fills",
    "reads_what_another_thread_copied": "race: .*reads byte .* of shared @tile, which another thread writes",
    "writes_what_a_copy_fills": "unfinished: .*writes byte .* of shared @tile, which nvvm.cp.async.* still fills",
    "fills_what_others_read": "race: .* of shared @tile",
    "ends_before_its_copy": "unfinished: .*ends without waiting for this copy",
    "copies_misaligned": "misaligned: .*not a multiple of 16",
    "copies_past_the_end": "out-of-bounds: .*byte 256 of binding 0",
    "multiplies_in_half_a_warp": "barrier: .*never come: thread .16,0,0. of block .0,0,0. has ended",
}


def buggy(kernel: str) -> SimulationReport:
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    return simulate(BUGS, kernel, (1,), [x, y], empty=[1])


def test_every_planted_bug_is_tested() -> None:
    assert set(re.findall(r"llvm.func @(\w+)\(%x", BUGS)) == set(FOUND)


@pytest.mark.parametrize("kernel", FOUND)
def test_finds(kernel: str) -> None:
    (fault,) = buggy(kernel).faults
    assert re.match(FOUND[kernel], str(fault)), str(fault)
    assert "planted" in (fault.location, fault.other_location)


_SUMS_IN_HALVES = """
llvm.func @halves(%x: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
  %h = llvm.mlir.constant(dense<1.0> : vector<2xf16>) : vector<2xf16>
  %r = nvvm.mma.sync A[%h, %h, %h, %h] B[%h, %h] C[%h, %h]
      {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
      : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
  llvm.return
}
"""


def test_refuses_other_matrices() -> None:
    with pytest.raises(
        tilewright.SimulationError, match=r"'nvvm.mma.sync' op of this shape .* is not simulated"
    ):
        simulate(_SUMS_IN_HALVES, "halves", (1,), [np.zeros(4, np.float32)])
