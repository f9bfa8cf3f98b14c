"""Contractions in kernels for GPUs on the simulated device: numbers against float64, traffic, safety."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from tilewright.oracle import float64_reference
from tilewright.ptxas import find_ptxas
from tilewright.signature import Array
from tilewright.simulated import simulate_program

from benchmarks.workloads.builder import GraphBuilder, gelu_erf

pytestmark = pytest.mark.skipif(not hasattr(tilewright, "simulate"), reason="no simulated device")

_TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
# One rounding of the result; sums are in f32, regrouped, of about a hundred terms around one.
_TOLERANCE = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}


@dataclass(frozen=True, kw_only=True)
class Product:
    """left @ right, where either may come transposed in its two innermost dims."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    element: str = "f32"
    transpose_left: bool = False
    transpose_right: bool = False
    then: str = ""

    def build(self) -> onnx.ModelProto:
        g = GraphBuilder("product")
        kind = _TYPES[self.element]
        x, y = g.input("left", self.left, kind), g.input("right", self.right, kind)
        if self.transpose_left:
            x = g.op("Transpose", x, perm=_swapped(len(self.left)))
        if self.transpose_right:
            y = g.op("Transpose", y, perm=_swapped(len(self.right)))
        result = g.op("MatMul", x, y)
        rows = self.left[-1] if self.transpose_left else self.left[-2]
        columns = self.right[-2] if self.transpose_right else self.right[-1]
        batch = np.broadcast_shapes(self.left[:-2], self.right[:-2])
        shape = (*batch, rows, columns)
        if self.then:
            result = g.op("Add", result, g.input("bias", (columns,), kind))
            result = gelu_erf(g, result) if self.then == "gelu" else g.op("Relu", result)
        g.output(result, shape, kind)
        return g.build()

    def inputs(self) -> list[Array]:
        rng = np.random.default_rng(7)
        shapes = [self.left, self.right]
        if self.then:
            shapes.append((self.right[-2] if self.transpose_right else self.right[-1],))
        return [rng.standard_normal(shape).astype(_DTYPES[self.element]) for shape in shapes]


def _swapped(rank: int) -> list[int]:
    return [*range(rank - 2), rank - 1, rank - 2]


@dataclass
class Outcome:
    """The program, and what the simulated device says of its one kernel."""

    program: tilewright.Program
    report: Any

    @property
    def micro_kernel(self) -> str:
        (name,) = (op.micro_kernel for op in self.program.kernels[0].ops if op.micro_kernel)
        return name


def run(product: Product, folder: Path) -> Outcome:
    model, inputs = product.build(), product.inputs()
    program = tilewright.compile(model, "cuda:h200", dump_dir=folder)
    ran = simulate_program(program, folder, inputs)  # raises if a kernel has a bug
    assert ran.invented == ()
    assert len(ran.kernels) == 1
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    tolerance = _TOLERANCE[product.element]
    np.testing.assert_allclose(
        ran.outputs[0].astype(np.float64).reshape(expected.shape),
        expected,
        rtol=tolerance,
        atol=tolerance * np.abs(expected).mean(),
    )
    return Outcome(program, ran.kernels[0])


_ALIGNED, _ODD = (64, 96, 128), (37, 75, 53)


@pytest.mark.parametrize(
    ("shape", "transposed", "element"),
    [
        *((_ALIGNED, transposed, "f16") for transposed in ("neither", "left", "right", "both")),
        *((_ODD, transposed, "f32") for transposed in ("neither", "left", "right", "both")),
        (_ALIGNED, "neither", "f32"),
        (_ALIGNED, "both", "f32"),
        (_ALIGNED, "right", "bf16"),
        (_ODD, "right", "f16"),
        (_ODD, "left", "bf16"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else value,
)
def test_products(shape: tuple[int, int, int], transposed: str, element: str, tmp_path: Path) -> None:
    rows, depth, columns = shape
    left, right = transposed in ("left", "both"), transposed in ("right", "both")
    product = Product(
        left=(depth, rows) if left else (rows, depth),
        right=(columns, depth) if right else (depth, columns),
        element=element,
        transpose_left=left,
        transpose_right=right,
    )
    assert run(product, tmp_path).micro_kernel == ("fma-8x8" if element == "f32" else "mma_sync-16x8")


@pytest.mark.parametrize(("left", "element"), [((1, 200), "f32"), ((5, 33), "f16")], ids=["vector", "5 rows"])
def test_few_rows(left: tuple[int, int], element: str, tmp_path: Path) -> None:
    run(Product(left=left, right=(left[1], 300), element=element), tmp_path)


def test_batches(tmp_path: Path) -> None:
    run(Product(left=(3, 2, 20, 24), right=(3, 2, 24, 40), element="f16"), tmp_path)


@pytest.mark.parametrize(("columns", "element"), [(64, "f16"), (51, "f32")])
def test_sums_are_handed_over_in_registers(columns: int, element: str, tmp_path: Path) -> None:
    """A bias and an activation are of the same kernel, and of the tile only the bias is kept in shared memory."""
    report = run(Product(left=(40, 64), right=(64, columns), element=element, then="gelu"), tmp_path).report
    kept = sum(
        site.counts.bytes
        for site in report.sites
        if (site.space, site.access) == ("shared", "store") and site.operation == "llvm.store"
    )
    assert kept <= report.blocks * columns * _DTYPES[element].itemsize


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_main_loop_has_no_bank_conflicts(element: str, tmp_path: Path) -> None:
    """Operands come in whole sectors, from DRAM once, and neither copies nor reads meet in a bank."""
    report = run(Product(left=(128, 128), right=(128, 128), element=element), tmp_path).report
    assert report.shared_reads.conflicts == 0
    assert report.shared_writes.conflicts == 0
    assert report.global_reads.coalescing == 1
    assert report.dram_bytes_read == 2 * 128 * 128 * _DTYPES[element].itemsize


def test_strict_numerics_do_without_tensor_cores() -> None:
    """They cut what they align for a sum: the graph's products are rounded one by one."""
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
