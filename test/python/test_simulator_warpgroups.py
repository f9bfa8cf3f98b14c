"""Products of four warps (wgmma) on the simulated device: numbers, and every misuse."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tilewright
from tilewright.signature import Array
from tilewright.simulator import SimulationReport, simulate

TEXT = (Path(__file__).resolve().parents[1] / "simulator" / "Inputs" / "wgmma.mlir").read_text()


def run(text: str) -> tuple[SimulationReport, Array, Array]:
    """The report, the sums as threads hold them, and the ones that there should be."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, shape).astype(np.float16) / 4 for shape in [(64, 16), (8, 16)])
    y = np.zeros((128, 4), np.float32)
    report = simulate(text, "multiplies", (1,), [a, b, y], empty=[2])
    warp, lane = np.arange(128) // 32, np.arange(128) % 32
    rows = [warp * 16 + lane // 4 + half * 8 for half in (0, 0, 1, 1)]
    columns = [lane % 4 * 2 + following for following in (0, 1, 0, 1)]
    product = a.astype(np.float32) @ b.astype(np.float32).T  # sixteenths: exact in any order
    expected = np.stack([product[row, column] for row, column in zip(rows, columns, strict=True)], axis=1)
    return report, y, expected


def replaced(name: str, new: str) -> str:
    """The kernel with another line, or lines, in the place of that of this name."""
    text, count = re.subn(rf"\n *(.*) // {name}(?=\n)", lambda line: f"\n{new.format(line[1])}", TEXT)
    assert count == 1
    return text


def test_multiplies() -> None:
    report, y, expected = run(TEXT)
    report.check()
    np.testing.assert_array_equal(y, expected)
    assert report.instructions.tensor == 4


def test_a_fence_of_the_readers_counts_as_well() -> None:
    (line,) = re.findall(r"\n *(.*) // proxy", TEXT)
    moved = replaced("proxy", "").replace("// barrier", f"\n{line}")
    report, y, expected = run(moved)
    report.check()
    np.testing.assert_array_equal(y, expected)


_READS_EARLY = (
    "%e = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>\n%f = llvm.fadd %e, %zero : f32\n"
)

FOUND = {
    "no fence of what was written": (replaced("proxy", ""), "unfenced: .*no fence.proxy.async"),
    "a fence of some threads alone": (
        replaced("proxy", "llvm.cond_br %copies, ^fences, ^fenced\n^fences:\n{0}\nllvm.br ^fenced\n^fenced:"),
        "unfenced: .*no fence.proxy.async",
    ),
    "no barrier": (replaced("barrier", ""), "(race|never-written): "),
    "no fence of registers": (replaced("registers", ""), "unfenced: .*no wgmma.fence"),
    "no commit": (replaced("commit", ""), "unfinished: .*uses sums .*not committed"),
    "no wait": (replaced("wait", ""), "unfinished: .*uses sums .*not waited for"),
    "too few groups waited for": (
        replaced("wait", "nvvm.wgmma.wait.group.sync.aligned 1"),
        "unfinished: .*uses",
    ),
    "sums that are read early": (replaced("wait", _READS_EARLY + "{0}"), "unfinished: .*uses sums"),
    "operands that are written early": (
        replaced("wait", "llvm.store %va, %sa {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<3>\n{0}"),
        "unfinished: .*writes byte .* of shared @tile, which nvvm.wgmma.mma_async still reads",
    ),
    "three warps": (TEXT.replace("i32: 128", "i32: 96"), "barrier: .*not four warps"),
    "a matrix between lines": (
        replaced("describe", "%next = llvm.add %ra, %four : i64\n%da = llvm.or %next, %fixed : i64"),
        "misaligned: .*swizzle of 32 bytes",
    ),
}


@pytest.mark.parametrize("bug", FOUND)
def test_finds(bug: str) -> None:
    text, pattern = FOUND[bug]
    report, _, _ = run(text)
    (fault,) = report.faults
    assert re.match(pattern, str(fault)), str(fault)


def test_refuses_products_that_it_does_not_know() -> None:
    with pytest.raises(tilewright.SimulationError, match="m64nNk16"):
        run(TEXT.replace("A [<f16>, #nvvm.wgmma_scale_in<one>", "A [<f16>, #nvvm.wgmma_scale_in<neg>"))
