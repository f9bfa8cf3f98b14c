"""Warpgroup products (wgmma) on the simulated device: results, and every misuse."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tilewright
from tilewright.records.signature import Array
from tilewright.simulator.device import SimulationReport, simulate

TEXT = (Path(__file__).resolve().parents[1] / "simulator" / "Inputs" / "wgmma.mlir").read_text()


_BYTES = {"s8": np.int8, "u8": np.uint8}


def of(left: str, right: str) -> str:
    """Returns the kernel for other operand types of the same size."""
    text = TEXT.replace("A [<f16>", f"A [<{left}>").replace("B [<f16>", f"B [<{right}>")
    if left == "tf32":
        return text.replace("k = 16", "k = 8")
    for name, other in (
        ("k = 16", "k = 32"),
        ("D [<f32>", "D [<s32>"),
        ("0.0 : f32) : f32", "0 : i32) : i32"),
        ("(f32, f32, f32, f32)", "(i32, i32, i32, i32)"),
        (": f32, !llvm.ptr<1>", ": i32, !llvm.ptr<1>"),
    ):
        text = text.replace(name, other)
    return text


def factors(text: str) -> tuple[Array, Array, Array]:
    """Returns both operands and their product."""
    rng = np.random.default_rng(0)
    a: Array
    b: Array
    left, right = re.findall(r"[AB] \[<(\w+)>", text)
    if left in _BYTES:
        infos = [(np.iinfo(_BYTES[name]), rows) for name, rows in ((left, 64), (right, 8))]
        a, b = (rng.integers(i.min, i.max + 1, (rows, 32)).astype(i.dtype) for i, rows in infos)
        return a, b, a.astype(np.int32) @ b.astype(np.int32).T
    if left == "tf32":  # the bits after tf32's last one are not read
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in [(64, 8), (8, 8)])
        cut = [(x.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(np.float64) for x in (a, b)]
        return a, b, (cut[0] @ cut[1].T).astype(np.float32)
    a, b = (rng.integers(-8, 9, shape).astype(np.float16) / 4 for shape in [(64, 16), (8, 16)])
    return a, b, a.astype(np.float32) @ b.astype(np.float32).T  # multiples of 1/16 are exact in any order


def run(text: str) -> tuple[SimulationReport, Array, Array]:
    """Returns the report, the accumulators as threads hold them, and the expected ones."""
    a, b, product = factors(text if "A [<" in text else TEXT)
    y = np.zeros((128, 4), product.dtype)
    report = simulate(text, "multiplies", (1,), [a, b, y], empty=[2])
    warp, lane = np.arange(128) // 32, np.arange(128) % 32
    rows = [warp * 16 + lane // 4 + half * 8 for half in (0, 0, 1, 1)]
    columns = [lane % 4 * 2 + following for following in (0, 1, 0, 1)]
    expected = np.stack([product[row, column] for row, column in zip(rows, columns, strict=True)], axis=1)
    return report, y, expected


def replaced(name: str, new: str, text: str = TEXT) -> str:
    """Returns the kernel with other lines in place of the one with this name."""
    text, count = re.subn(rf"\n *(.*) // {name}(?=\n)", lambda line: f"\n{new.format(line[1])}", text)
    assert count == 1
    return text


def from_registers() -> str:
    """Returns the kernel with the lhs in registers, for which the dialect has no op."""
    words = [
        f"""
    %i{word} = llvm.mlir.constant({word % 2 * 64 + word // 2 * 4} : i32) : i32
    %j{word} = llvm.add %own, %i{word} : i32
    %q{word} = llvm.getelementptr %a[%j{word}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %w{word} = llvm.load %q{word} {{alignment = 4 : i64}} : !llvm.ptr<1> -> i32"""
        for word in range(4)
    ]
    fragments = """
    %three = llvm.mlir.constant(3 : i32) : i32
    %warp = llvm.mlir.constant(5 : i32) : i32
    %lanes = llvm.mlir.constant(31 : i32) : i32
    %rows = llvm.mlir.constant(7 : i32) : i32
    %lane = llvm.and %t, %lanes : i32
    %quad = llvm.lshr %lane, %two : i32
    %column = llvm.and %lane, %three : i32
    %number = llvm.lshr %t, %warp : i32
    %upper = llvm.shl %number, %rows : i32
    %line8 = llvm.shl %quad, %three : i32
    %first = llvm.add %upper, %line8 : i32
    %own = llvm.add %first, %column : i32""" + "".join(words)
    assembly = (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, p, 1, 1, 0;"
    )
    product = (
        "%z0 = llvm.mlir.constant(0.0 : f32) : f32\n"
        f'%d = llvm.inline_asm has_side_effects "{assembly}", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l" '
        "%z0, %z0, %z0, %z0, %w0, %w1, %w2, %w3, %db : "
        "(f32, f32, f32, f32, i32, i32, i32, i32, i64) -> !llvm.struct<(f32, f32, f32, f32)>"
    )
    text = TEXT.replace(
        "    %none = llvm.mlir.undef", fragments.lstrip("\n") + "\n    %none = llvm.mlir.undef"
    )
    text, count = re.subn(r"%d = nvvm.wgmma.mma_async .*", lambda _: product, text)
    assert count == 1
    return text


REGISTERS = from_registers()


@pytest.mark.parametrize(
    "text",
    [TEXT, REGISTERS, of("tf32", "tf32"), of("s8", "s8"), of("u8", "s8"), of("s8", "u8")],
    ids=["f16", "f16 in registers", "tf32", "s8 by s8", "u8 by s8", "s8 by u8"],
)
def test_multiplies(text: str) -> None:
    report, y, expected = run(text)
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
    "no commit": (replaced("commit", ""), "unfinished: .*uses accumulators .*not committed"),
    "no wait": (replaced("wait", ""), "unfinished: .*uses accumulators .*not waited for"),
    "too few groups waited for": (
        replaced("wait", "nvvm.wgmma.wait.group.sync.aligned 1"),
        "unfinished: .*uses",
    ),
    "sums that are read early": (replaced("wait", _READS_EARLY + "{0}"), "unfinished: .*uses accumulators"),
    "operands that are written early": (
        replaced("wait", "llvm.store %va, %sa {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<3>\n{0}"),
        "unfinished: .*writes byte .* of shared @tile, which nvvm.wgmma.mma_async still reads",
    ),
    "three warps": (TEXT.replace("i32: 128", "i32: 96"), "barrier: .*not have four warps"),
    "a matrix between lines": (
        replaced("describe", "%next = llvm.add %ra, %four : i64\n%da = llvm.or %next, %fixed : i64"),
        "misaligned: .*swizzle of 32 bytes",
    ),
    # The variable has no more than its requested alignment.
    "memory that is aligned for less": (
        TEXT.replace("alignment = 1024", "alignment = 128"),
        "misaligned: .*swizzle of 32 bytes",
    ),
}


for _factors in ("s8", "tf32"):
    _text = of(_factors, _factors)
    FOUND |= {
        f"no fence of what was written, {_factors}": (
            replaced("proxy", "", _text),
            "unfenced: .*no fence.proxy.async",
        ),
        f"no wait, {_factors}": (
            replaced("wait", "", _text),
            "unfinished: .*uses accumulators .*not waited for",
        ),
    }


FOUND |= {
    f"{what}, in registers": (replaced(name, new, REGISTERS), pattern)
    for what, name, new, pattern in (
        ("no fence of what was written", "proxy", "", "unfenced: .*no fence.proxy.async"),
        ("no fence of registers", "registers", "", "unfenced: .*no wgmma.fence"),
        ("no commit", "commit", "", "unfinished: .*uses accumulators .*not committed"),
        ("no wait", "wait", "", "unfinished: .*uses accumulators .*not waited for"),
        ("sums that are read early", "wait", _READS_EARLY + "{0}", "unfinished: .*uses accumulators"),
    )
}


@pytest.mark.parametrize("bug", FOUND)
def test_finds(bug: str) -> None:
    text, pattern = FOUND[bug]
    report, _, _ = run(text)
    (fault,) = report.faults
    assert re.match(pattern, str(fault)), str(fault)


@pytest.mark.parametrize(
    ("text", "known", "other"),
    [
        (TEXT, "A [<f16>, #nvvm.wgmma_scale_in<one>", "A [<f16>, #nvvm.wgmma_scale_in<neg>"),
        (of("s8", "s8"), "#nvvm.wgmma_scale_out<one>", "#nvvm.wgmma_scale_out<one>, <satfinite>"),
    ],
    ids=["negated", "sums that do not wrap"],
)
def test_refuses_products_that_it_does_not_know(text: str, known: str, other: str) -> None:
    assert known in text
    with pytest.raises(tilewright.SimulationError, match="of these types is not simulated"):
        run(text.replace(known, other))


def test_refuses_assembly_that_it_does_not_know() -> None:
    with pytest.raises(tilewright.SimulationError, match="only f16 and bf16 with lhs in registers"):
        run(REGISTERS.replace("k16.f32.f16.f16", "k16.f32.f16.bf16"))
