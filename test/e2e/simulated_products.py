"""Products of matrices that run in GPU kernels on the simulated device, and are compared with float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import tilewright
from onnx import TensorProto
from tilewright.records.signature import Array
from tilewright.reference.oracle import float64_reference
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder, gelu_erf

TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
# The result has one rounding; sums are in f32, regrouped, of about a hundred terms around one.
TOLERANCE = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}


ALIGNED, ODD = (64, 96, 128), (37, 75, 53)


@dataclass(frozen=True, kw_only=True)
class Product:
    """A model of left @ right; the two innermost dims of either may be transposed."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    element: str = "f32"
    transpose_left: bool = False
    transpose_right: bool = False
    then: str = ""

    @classmethod
    def of(cls, shape: tuple[int, int, int], transposed: str, *, element: str, then: str = "") -> Product:
        """Builds a product of the shape (M, K, N); `transposed` is neither, left, right or both."""
        rows, depth, columns = shape
        left, right = transposed in ("left", "both"), transposed in ("right", "both")
        return cls(
            left=(depth, rows) if left else (rows, depth),
            right=(columns, depth) if right else (depth, columns),
            element=element,
            transpose_left=left,
            transpose_right=right,
            then=then,
        )

    def build(self) -> onnx.ModelProto:
        g = GraphBuilder("product")
        kind = TYPES[self.element]
        x, y = g.input("left", self.left, kind), g.input("right", self.right, kind)
        if self.transpose_left:
            x = g.op("Transpose", x, perm=swapped(len(self.left)))
        if self.transpose_right:
            y = g.op("Transpose", y, perm=swapped(len(self.right)))
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
        return [rng.standard_normal(shape).astype(DTYPES[self.element]) for shape in shapes]


def swapped(rank: int) -> list[int]:
    return [*range(rank - 2), rank - 1, rank - 2]


@dataclass
class Outcome:
    """The program, and the simulated device's report on its one kernel."""

    program: tilewright.Program
    report: Any

    @property
    def micro_kernel(self) -> str:
        (name,) = (op.micro_kernel for op in self.program.kernels[0].ops if op.micro_kernel)
        return name


def assert_near(
    outputs: Sequence[Array] | None, model: onnx.ModelProto, inputs: Sequence[Array], element: str
) -> None:
    """Compares the only output of a model with float64."""
    assert outputs is not None
    (expected,) = float64_reference(model, inputs)
    tolerance = TOLERANCE[element]
    np.testing.assert_allclose(
        outputs[0].astype(np.float64).reshape(expected.shape),
        expected,
        rtol=tolerance,
        atol=tolerance * np.abs(expected).mean(),
    )


Edit = Callable[[tilewright.Plan], None]


def run(product: Product, folder: Path, *, edit: Edit | None = None) -> Outcome:
    model, inputs = product.build(), product.inputs()
    plan = None
    if edit:
        plan = tilewright.compile(model, "cuda:h200").plan
        edit(plan)
    program = tilewright.compile(model, "cuda:h200", plan=plan, dump_dir=folder)
    ran = simulate_program(program, folder, inputs)  # raises if a kernel has a bug
    assert ran.invented == ()
    assert len(ran.kernels) == 1
    assert_near(ran.outputs, model, inputs, product.element)
    return Outcome(program, ran.kernels[0])


def by_warpgroups(*tile: int, threads: int = 128, label: str = "wgmma-64x8") -> Edit:
    """Sets a plan's tile of a warpgroup to this size."""

    def edit(plan: tilewright.Plan) -> None:
        (part,) = (part for kernel in plan.kernels for part in kernel.groups)
        part.threads = threads
        for dim, size in zip(part.grid, tile, strict=True):
            part.tiles[dim] = min(size, part.extents[dim])
        part.workgroups = math.prod(-(-part.extents[dim] // part.tiles[dim]) for dim in part.grid)
        for op in part.ops:
            if op.micro_kernel:
                op.micro_kernel = label
                op.gemm = None  # chosen for the new tile
            op.tilings = []  # they follow from the micro kernel and the tile

    return edit
