"""Tests of contractions in GPU kernels on the simulated device: numbers against float64, traffic, safety."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tilewright
from simulated_products import (
    ALIGNED,
    DTYPES,
    ODD,
    TOLERANCE,
    TYPES,
    Product,
    run,
)
from tilewright.records.signature import Array
from tilewright.reference.oracle import float64_reference
from tilewright.simulator.programs import simulate_program
from tilewright.system.ptxas import find_ptxas

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)


@pytest.mark.parametrize(
    ("shape", "transposed", "element"),
    [
        *((ALIGNED, transposed, "f16") for transposed in ("neither", "left", "right", "both")),
        *((ODD, transposed, "f32") for transposed in ("neither", "left", "right", "both")),
        (ALIGNED, "neither", "f32"),
        (ALIGNED, "both", "f32"),
        (ALIGNED, "right", "bf16"),
        (ODD, "right", "f16"),
        (ODD, "left", "bf16"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else value,
)
def test_products(shape: tuple[int, int, int], transposed: str, element: str, tmp_path: Path) -> None:
    label = run(Product.of(shape, transposed, element=element), tmp_path).micro_kernel
    assert re.sub(r"k[248]$", "", label) == ("fma-8x8" if element == "f32" else "mma_sync-16x8")


@pytest.mark.parametrize(("left", "element"), [((1, 200), "f32"), ((5, 33), "f16")], ids=["vector", "5 rows"])
def test_few_rows(left: tuple[int, int], element: str, tmp_path: Path) -> None:
    run(Product(left=left, right=(left[1], 300), element=element), tmp_path)


@pytest.mark.parametrize(
    ("left", "columns", "transposed", "element"),
    [
        ((1, 512), 64, "neither", "f16"),
        ((5, 512), 64, "right", "bf16"),
        ((16, 812), 48, "neither", "f16"),
        ((1, 768), 768, "neither", "f32"),
        ((1, 512), 64, "right", "f32"),
        ((3, 515), 33, "neither", "f32"),
    ],
    ids=["1 f16", "5 bf16 transposed", "16 f16 tail", "1 f32", "1 f32 transposed", "3 f32 odd"],
)
def test_few_rows_share_the_terms(
    left: tuple[int, int], columns: int, transposed: str, element: str, tmp_path: Path
) -> None:
    """Threads or warps without accumulators of their own take over parts of K, and weights are read from DRAM once."""
    turned = transposed == "right"
    right = (columns, left[1]) if turned else (left[1], columns)
    outcome = run(Product(left=left, right=right, element=element, transpose_right=turned), tmp_path)
    assert re.search(r"k[248]$", outcome.micro_kernel)
    assert "reassociated over lanes" in outcome.program.explain()
    operands = (left[0] + columns) * left[1] * DTYPES[element].itemsize
    # Odd rows are read in whole sectors of 32 bytes.
    assert outcome.report.dram_bytes_read <= 1.05 * operands
    assert outcome.report.shared_reads.conflicts == 0


@pytest.mark.parametrize(
    ("left", "columns", "transposed", "element", "then"),
    [
        ((1, 16384), 24, "neither", "f32", ""),
        ((5, 8192), 40, "right", "f16", "gelu"),
        ((16, 10240), 33, "neither", "bf16", "relu"),
        ((64, 8192), 64, "left", "f16", ""),
    ],
    ids=["1 f32", "5 f16 transposed, gelu", "16 bf16 odd, relu", "64 f16 left transposed"],
)
def test_blocks_share_long_sums(
    left: tuple[int, int], columns: int, transposed: str, element: str, then: str, tmp_path: Path
) -> None:
    """With few tiles and a long K, each block takes a part of K; then a few blocks add the partial sums and apply the
    following ops, behind a grid barrier or in another kernel."""
    turned = transposed == "right"
    product = Product(
        left=left[::-1] if transposed == "left" else left,
        right=(columns, left[1]) if turned else (left[1], columns),
        element=element,
        transpose_left=transposed == "left",
        transpose_right=turned,
        then=then,
    )
    model, inputs = product.build(), product.inputs()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    assert len(program.kernels) <= 2
    assert program.kernels[0].workgroups >= 32
    ran = simulate_program(program, tmp_path, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    tolerance = 4 * TOLERANCE[element] if element == "f32" else TOLERANCE[element]
    np.testing.assert_allclose(
        ran.outputs[0].astype(np.float64), expected, rtol=tolerance, atol=tolerance * np.abs(expected).mean()
    )
    # Operands are read once; the hand-over is 1/128 as large.
    operands = (left[0] + columns) * left[1] * DTYPES[element].itemsize
    assert ran.kernels[0].dram_bytes_read <= 1.05 * operands
    if find_ptxas():
        assert not any(own.spill_bytes for own in program.metadata.resources.values())
    assert program.plan is not None
    (split,) = [form for form in program.plan.forms if form.form == "two-phase reduction"]
    assert split.taken
    assert split.seconds < split.otherwise_seconds


def test_strict_numerics_leave_tiles_whole() -> None:
    model = Product(left=(1, 8209), right=(8209, 768)).build()
    assert "which share" in tilewright.compile(model, "cuda:h200").explain()
    strict = tilewright.compile(model, "cuda:h200", numerics="strict")
    assert "which share" not in strict.explain()
    plan = strict.plan
    assert plan is not None
    plan.kernels[0].groups[0].steps = 65
    with pytest.raises(tilewright.PlanError, match="numerics are strict"):
        tilewright.compile(model, "cuda:h200", numerics="strict", plan=plan)


def test_strict_numerics_leave_long_sums_whole() -> None:
    program = tilewright.compile(
        Product(left=(1, 16384), right=(16384, 24)).build(), "cuda:h200", numerics="strict"
    )
    assert len(program.kernels) == 1
    assert "two-phase" not in program.explain()


def test_copies_that_alignment_makes_narrow_are_explained() -> None:
    text = tilewright.compile(
        Product(left=(16, 33), right=(33, 64), element="f16").build(), "cuda:h200"
    ).explain()
    assert "operand 0 copied 4 bytes at a time: its rows of 33 x f16 are not aligned to 16 bytes" in text
    assert "operand 1" not in text


def test_lines_that_begin_inside_words_are_copied_asynchronously(tmp_path: Path) -> None:
    """They are copied as words: the first may hold an element of the line before, and the last may have only elements
    behind the end."""
    outcome = run(Product(left=(33, 131), right=(131, 65), element="f16"), tmp_path)
    assert outcome.micro_kernel.startswith("mma_sync")
    ptx = (tmp_path / "kernels.ptx").read_text()
    assert "cp.async.ca" in ptx
    assert "ld.global.b16" not in ptx


def test_long_streams_have_many_steps_on_the_way(tmp_path: Path) -> None:
    outcome = run(Product(left=(1, 8192), right=(8192, 136), element="f16"), tmp_path)
    assert outcome.micro_kernel.startswith("mma_sync")


@pytest.mark.parametrize(
    ("size", "element", "copied"),
    [(64, "f16", "cp.async.cg"), (32, "f32", "cp.async.cg"), (12, "f16", "cp.async.ca")],
    ids=["f16", "f32", "8 bytes"],
)
def test_heads_that_lie_apart_are_copied_together(
    size: int, element: str, copied: str, tmp_path: Path
) -> None:
    """This follows an attention: a row of the operand has a piece from each head, and each is copied whole if it is
    aligned."""
    heads, rows, columns, kind = 4, 37, 64, TYPES[element]
    g = GraphBuilder("projection")
    x = g.op("Transpose", g.input("heads", (heads, rows, size), kind), perm=[1, 0, 2])
    x = g.op("Reshape", x, g.constant(np.array([rows, heads * size], dtype=np.int64)))
    g.output(g.op("MatMul", x, g.input("weight", (heads * size, columns), kind)), (rows, columns), kind)
    model = g.build()
    rng = np.random.default_rng(3)
    inputs: list[Array] = [
        rng.standard_normal(shape).astype(DTYPES[element])
        for shape in ((heads, rows, size), (heads * size, columns))
    ]
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    assert ("operand 0 copied 8 bytes at a time" in program.explain()) == (copied == "cp.async.ca")
    assert "element by element" not in program.explain()
    assert copied in (tmp_path / "kernels.ptx").read_text()
    ran = simulate_program(program, tmp_path, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    tolerance = TOLERANCE[element]
    np.testing.assert_allclose(
        ran.outputs[0].astype(np.float64).reshape(expected.shape),
        expected,
        rtol=tolerance,
        atol=tolerance * np.abs(expected).mean(),
    )


def test_batches(tmp_path: Path) -> None:
    run(Product(left=(3, 2, 20, 24), right=(3, 2, 24, 40), element="f16"), tmp_path)


@pytest.mark.parametrize(("columns", "element"), [(64, "f16"), (51, "f32")])
def test_sums_are_handed_over_in_registers(columns: int, element: str, tmp_path: Path) -> None:
    """A bias and an activation are in the same kernel; only the bias is staged in shared memory for the tile."""
    depth = (
        4 if element == "f32" else 16
    )  # K is too short to be shared by threads, which would keep accumulators there
    product = Product(left=(40, depth), right=(depth, columns), element=element, then="gelu")
    report = run(product, tmp_path).report
    kept = sum(
        site.counts.bytes
        for site in report.sites
        if (site.space, site.access) == ("shared", "store") and site.operation == "llvm.store"
    )
    assert kept <= report.blocks * columns * DTYPES[element].itemsize


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_main_loop_has_no_bank_conflicts(element: str, tmp_path: Path) -> None:
    """Operands are read in whole sectors, from DRAM once, and neither copies nor reads have bank conflicts."""
    report = run(Product(left=(128, 128), right=(128, 128), element=element), tmp_path).report
    assert report.shared_reads.conflicts == 0
    assert report.shared_writes.conflicts == 0
    assert report.global_reads.coalescing == 1
    assert report.dram_bytes_read == 2 * 128 * 128 * DTYPES[element].itemsize


def test_strict_numerics_do_without_tensor_cores() -> None:
    """Tensor cores truncate products when they align them for a sum; the graph's products are rounded one by one."""
    product = Product(left=(40, 64), right=(64, 48), element="f16").build()
    program = tilewright.compile(product, "cuda:h200", numerics="strict")
    assert "mma_sync" not in program.explain()


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_large_products_do_not_spill(element: str, target: str) -> None:
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    product = Product(left=(1024, 768), right=(768, 3072), element=element, then="gelu")
    program = tilewright.compile(product.build(), target)
    (kernel,) = program.kernels
    resources = program.metadata.resources[kernel.name]
    assert resources.spill_bytes == 0
    assert resources.registers <= 255
    assert any("mma_sync" in op.micro_kernel for op in kernel.ops) == (element == "f16")


def test_rows_that_are_not_aligned_do_not_spill() -> None:
    """Elements that pass through registers on their way to shared memory do so a few at a time."""
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    program = tilewright.compile(
        Product(left=(2045, 1021), right=(1021, 2043), element="f16").build(), "cuda:h200"
    )
    (kernel,) = program.kernels
    assert program.metadata.resources[kernel.name].spill_bytes == 0
