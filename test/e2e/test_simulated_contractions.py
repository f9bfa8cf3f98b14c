"""Tests of contractions in GPU kernels on the simulated device: numbers against float64, traffic, safety."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from assembled import check_warpgroups
from onnx import TensorProto
from tilewright.compare.oracle import float64_reference
from tilewright.errors import PlanError
from tilewright.records.signature import Array
from tilewright.runtime.tensors import LaunchTensors
from tilewright.simulator.programs import describe_launches, simulate_program
from tilewright.system.ptxas import find_ptxas

from benchmarks.workloads.builder import GraphBuilder, gelu_erf

pytestmark = [
    pytest.mark.skipif(not hasattr(tilewright, "simulate"), reason="no simulated device"),
    pytest.mark.lands(one_in=6),
]

_TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
# The result has one rounding; sums are in f32, regrouped, of about a hundred terms around one.
_TOLERANCE = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}


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
    """The program, and the simulated device's report on its one kernel."""

    program: tilewright.Program
    report: Any

    @property
    def micro_kernel(self) -> str:
        (name,) = (op.micro_kernel for op in self.program.kernels[0].ops if op.micro_kernel)
        return name


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
    operands = (left[0] + columns) * left[1] * _DTYPES[element].itemsize
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
    tolerance = 4 * _TOLERANCE[element] if element == "f32" else _TOLERANCE[element]
    np.testing.assert_allclose(
        ran.outputs[0].astype(np.float64), expected, rtol=tolerance, atol=tolerance * np.abs(expected).mean()
    )
    # Operands are read once; the hand-over is 1/128 as large.
    operands = (left[0] + columns) * left[1] * _DTYPES[element].itemsize
    assert ran.kernels[0].dram_bytes_read <= 1.05 * operands
    if find_ptxas():
        assert not any(own.spill_bytes for own in program.metadata.resources.values())
    said = re.search(
        r"two-phase reduction \(([\d.]+) us predicted, one phase ([\d.]+) us\)", program.explain()
    )
    assert said
    assert float(said[1]) < float(said[2])


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
            for tiling in op.tilings[:1]:
                tiling.sizes = [part.tiles[dim] if dim >= 0 else 1 for dim in op.dims]

    return edit


@pytest.mark.parametrize(
    ("shape", "transposed", "element", "then"),
    [
        ((128, 128, 256), "neither", "f16", ""),
        ((128, 128, 256), "both", "bf16", "gelu"),
        ((192, 72, 136), "right", "f16", "relu"),
        ((100, 77, 190), "left", "f16", ""),
        ((64, 584, 128), "neither", "f16", ""),
    ],
    ids=["whole tiles", "both transposed", "tails", "rows that are not aligned", "steps that overlap"],
)
def test_warpgroups(
    shape: tuple[int, int, int], transposed: str, element: str, then: str, tmp_path: Path
) -> None:
    """The planner uses wgmma for large products only; a modified plan forces it for these small ones."""
    product = Product.of(shape, transposed, element=element, then=then)
    assert run(product, tmp_path, edit=by_warpgroups(64, 128)).micro_kernel == "wgmma-64x8"


def _shared_by(workgroups: int, *, first: Edit | None = None) -> Edit:
    """Makes this many workgroups share the steps of all tiles; code generation determines the number of steps."""

    def edit(plan: tilewright.Plan) -> None:
        if first:
            first(plan)
        (part,) = (part for kernel in plan.kernels for part in kernel.groups)
        part.steps, part.workgroups = 64, workgroups

    return edit


@pytest.mark.parametrize(
    ("product", "edit"),
    [
        (Product.of((64, 512, 96), "neither", element="f32"), _shared_by(5)),
        (Product.of((64, 512, 96), "neither", element="f16", then="gelu"), _shared_by(7)),
        (Product.of((37, 511, 53), "right", element="bf16", then="relu"), _shared_by(11)),
        (Product.of((5, 515, 64), "neither", element="f32"), _shared_by(9)),
        (Product.of((1, 1024, 64), "right", element="f16", then="relu"), _shared_by(3)),
        (
            Product.of((128, 584, 256), "neither", element="f16", then="gelu"),
            _shared_by(5, first=by_warpgroups(64, 128)),
        ),
        (
            Product.of((100, 777, 190), "left", element="f16"),
            _shared_by(23, first=by_warpgroups(64, 128)),
        ),
        (
            Product.of((296, 328, 256), "neither", element="bf16", then="gelu"),
            _shared_by(5, first=by_warpgroups(128, 256, threads=256)),
        ),
    ],
    ids=lambda value: f"{value.left} {value.right} {value.element}" if isinstance(value, Product) else "",
)
def test_workgroups_share_tiles(product: Product, edit: Edit, tmp_path: Path) -> None:
    """This is stream-K: a workgroup that adds to a tile begun by another one uses a buffer."""
    assert run(product, tmp_path, edit=edit).report.grid_barriers == 1


def test_sharing_tiles_is_chosen_where_waves_are_not_full() -> None:
    """288 tiles are three waves of 132 blocks, and the last wave is nearly empty."""
    model = Product(left=(3072, 3072), right=(3072, 3072), element="f16").build()
    program = tilewright.compile(model, "cuda:h200")
    assert "132 workgroups of 256 threads, which share the 48 steps of each tile" in program.explain()
    apart = tilewright.compile(model, "cuda:h200", grid_sync=False)
    assert "which share" not in apart.explain()
    assert program.kernels[0].predicted_seconds < 0.9 * apart.kernels[0].predicted_seconds


@pytest.mark.parametrize(
    ("steps", "workgroups", "grid_sync", "said"),
    [
        (-1, 4, True, "a tile has -1 steps"),
        (2, 1000, True, "1000 workgroups for "),
        (64, 5, False, "takes a barrier of the grid: that is forbidden"),
    ],
)
def test_sharing_that_cannot_be_is_refused(
    steps: int, workgroups: int, *, grid_sync: bool, said: str
) -> None:
    model = Product(left=(64, 512), right=(512, 96), element="f16").build()
    plan = tilewright.compile(model, "cuda:h200").plan
    assert plan is not None
    plan.kernels[0].groups[0].steps, plan.kernels[0].groups[0].workgroups = steps, workgroups
    with pytest.raises(tilewright.PlanError, match=said):
        tilewright.compile(model, "cuda:h200", plan=plan, grid_sync=grid_sync)


@pytest.mark.parametrize(
    ("tile", "threads", "transposed"),
    [((128, 256), 256, "neither"), ((64, 256), 128, "both"), ((256, 128), 256, "right")],
    ids=["128x256", "64x256", "256x128"],
)
def test_warpgroups_with_128_sums_a_thread(
    tile: tuple[int, int], threads: int, transposed: str, tmp_path: Path
) -> None:
    """Tiles have the size that products of thousands use, and the matrix ends within the second tile."""
    product = Product.of((tile[0] + 40, 328, tile[1]), transposed, element="f16", then="gelu")
    outcome = run(product, tmp_path, edit=by_warpgroups(*tile, threads=threads))
    assert outcome.micro_kernel == "wgmma-64x8"
    check_warpgroups(tmp_path)


@pytest.mark.parametrize(
    ("wait", "instead", "fault"),
    [
        (1, "2", "unfinished: .*writes byte .*wgmma.mma_async still reads"),
        (0, "", "unfinished: .*uses accumulators"),
    ],
    ids=["of the step before", "of the last step"],
)
def test_a_missing_wait_of_warpgroups_is_found(wait: int, instead: str, fault: str, tmp_path: Path) -> None:
    """The stage of a step may be refilled, and the accumulators stored, only when the products of that step are
    complete."""
    product = Product.of((64, 584, 128), "neither", element="f16")
    run(product, tmp_path, edit=by_warpgroups(64, 128))
    flow = describe_launches(tmp_path)
    asked = "nvvm.wgmma.wait.group.sync.aligned"
    line = f"{asked} {instead}\n" if instead else "\n"
    text, count = re.subn(rf"{asked} {wait}\b.*\n", line, flow["kernels"])
    assert count == 1
    (launch,) = flow["launches"]
    report = tilewright.simulate(
        text,
        launch["kernel"],
        (launch["workgroups"],),
        [*product.inputs(), np.zeros((64, 128), np.float16)],
        target="cuda:h200",
        empty=[2],
        dynamic_shared_bytes=launch["dynamic_shared_bytes"],
    )
    assert re.match(fault, str(report.faults[0])), str(report.faults[0])


def test_a_missing_barrier_between_those_who_share_a_tile_is_found(tmp_path: Path) -> None:
    product = Product.of((64, 512, 96), "neither", element="f32")
    run(product, tmp_path, edit=_shared_by(5))
    flow = describe_launches(tmp_path)
    text, count = re.subn(r"llvm.call @tile_grid_barrier\(.*\n", "\n", flow["kernels"])
    assert count == 1
    (launch,) = flow["launches"]
    tensors = LaunchTensors(flow["tensors"], product.inputs(), {})
    report = tilewright.simulate(
        text,
        launch["kernel"],
        (launch["workgroups"],),
        [*product.inputs(), *(tensors.new(number) for number in launch["outputs"])],
        target="cuda:h200",
        empty=[2, 3],
        dynamic_shared_bytes=launch["dynamic_shared_bytes"],
    )
    assert re.match("race|never-written", str(report.faults[0])), str(report.faults[0])


def test_a_plan_that_names_warpgroups_elsewhere_is_refused() -> None:
    product = Product.of((64, 96, 128), "neither", element="f16")
    plan = tilewright.compile(product.build(), "cuda:a100").plan
    assert plan is not None
    by_warpgroups(64, 128)(plan)
    with pytest.raises(PlanError, match=r"'wgmma-64x8'; target 'cuda:a100' has .* mma_sync-16x8"):
        tilewright.compile(product.build(), "cuda:a100", plan=plan)


def test_strict_numerics_name_and_predict_what_is_taken() -> None:
    product = Product.of((2048, 2048, 2048), "neither", element="f16").build()
    quick = tilewright.compile(product, "cuda:h200").kernels[0]
    strict = tilewright.compile(product, "cuda:h200", numerics="strict").kernels[0]
    assert any(op.micro_kernel.startswith("wgmma") for op in quick.ops)
    assert any(op.micro_kernel.startswith("fma") for op in strict.ops)
    assert strict.predicted_seconds > 4 * quick.predicted_seconds


_BYTES: dict[str, tuple[int, type]] = {"s": (TensorProto.INT8, np.int8), "u": (TensorProto.UINT8, np.uint8)}


@pytest.mark.parametrize(
    ("shape", "transposed", "signs"),
    [
        (_ALIGNED, "neither", "ss"),
        (_ALIGNED, "right", "us"),
        (_ALIGNED, "left", "su"),
        (_ODD, "neither", "us"),
        (_ODD, "both", "ss"),
        ((3, 512, 64), "neither", "ss"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else value,
)
def test_bytes_are_multiplied_exactly(
    shape: tuple[int, int, int], transposed: str, signs: str, tmp_path: Path
) -> None:
    model, inputs, expected = _product_of_bytes(shape, transposed, signs)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    assert any(op.micro_kernel.startswith("mma_sync-16x8") for kernel in program.kernels for op in kernel.ops)
    ran = simulate_program(program, tmp_path, inputs)
    assert ran.outputs is not None
    np.testing.assert_array_equal(ran.outputs[0], expected)
    assert any(kernel.instructions.tensor for kernel in ran.kernels)


def _product_of_bytes(
    shape: tuple[int, int, int], transposed: str, signs: str
) -> tuple[onnx.ModelProto, list[Array], Array]:
    """Returns the model, its inputs and its result."""
    rows, depth, columns = shape
    g, rng, inputs, factors = GraphBuilder("bytes"), np.random.default_rng(3), [], []
    for name, size, sign in (("left", (rows, depth), signs[0]), ("right", (depth, columns), signs[1])):
        swaps = transposed in (name, "both")
        kind, dtype = _BYTES[sign]
        info = np.iinfo(dtype)
        array = rng.integers(info.min, info.max + 1, size[::-1] if swaps else size).astype(dtype)
        inputs.append(array)
        x = g.input(name, array.shape, kind)
        factors.append(g.op("Transpose", x, perm=[1, 0]) if swaps else x)
    g.output(g.op("MatMulInteger", *factors), (rows, columns), TensorProto.INT32)
    left, right = (
        (array.T if transposed in (name, "both") else array).astype(np.int64)
        for name, array in zip(("left", "right"), inputs, strict=True)
    )
    return g.build(), inputs, left @ right


@pytest.mark.parametrize(
    ("shape", "signs"),
    [((128, 256, 256), "ss"), ((100, 77, 190), "uu")],
    ids=["whole tiles", "tails of rows that are not aligned"],
)
def test_warpgroups_multiply_bytes(shape: tuple[int, int, int], signs: str, tmp_path: Path) -> None:
    """The product is exact if K is innermost in both operands."""
    model, inputs, expected = _product_of_bytes(shape, "right", signs)
    plan = tilewright.compile(model, "cuda:h200").plan
    assert plan is not None
    by_warpgroups(64, 128)(plan)
    program = tilewright.compile(model, "cuda:h200", plan=plan, dump_dir=tmp_path)
    assert [op.micro_kernel for op in program.kernels[0].ops if op.micro_kernel] == ["wgmma-64x8"]
    ran = simulate_program(program, tmp_path, inputs)
    assert ran.outputs is not None
    np.testing.assert_array_equal(ran.outputs[0], expected)


@pytest.mark.parametrize("transposed", ["neither", "both"])
def test_warpgroups_leave_bytes_to_warps(transposed: str) -> None:
    """Operands that would have to be transposed are multiplied by warps."""
    model, _, _ = _product_of_bytes((64, 96, 128), transposed, "ss")
    plan = tilewright.compile(model, "cuda:h200").plan
    assert plan is not None
    by_warpgroups(64, 128)(plan)
    program = tilewright.compile(model, "cuda:h200", plan=plan)
    assert [op.micro_kernel for op in program.kernels[0].ops if op.micro_kernel] == ["mma_sync-16x8"]


def test_warpgroups_are_refused_for_bytes_of_two_signs() -> None:
    model, _, _ = _product_of_bytes((64, 96, 128), "right", "us")
    plan = tilewright.compile(model, "cuda:h200").plan
    assert plan is not None
    by_warpgroups(64, 128)(plan)
    with pytest.raises(PlanError, match=r"'wgmma-64x8'; target 'cuda:h200' has .* mma_sync-16x8"):
        tilewright.compile(model, "cuda:h200", plan=plan)


def _tf32(array: Array) -> Array:
    """Rounds to 10 fraction bits, ties away from zero."""
    rounded: Array = ((array.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)
    return rounded


@pytest.mark.parametrize(
    ("shape", "transposed"),
    [(_ALIGNED, "neither"), (_ALIGNED, "right"), (_ODD, "left"), ((2, 512, 64), "neither")],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else value,
)
def test_tf32_is_an_option_that_is_said_aloud(
    shape: tuple[int, int, int], transposed: str, tmp_path: Path
) -> None:
    rows, depth, columns = shape
    product = Product(
        left=(depth, rows) if transposed == "left" else (rows, depth),
        right=(columns, depth) if transposed == "right" else (depth, columns),
        transpose_left=transposed == "left",
        transpose_right=transposed == "right",
    )
    model, inputs = product.build(), product.inputs()
    program = tilewright.compile(model, "cuda:h200", numerics="tf32", dump_dir=tmp_path)
    assert "tf32 numerics" in program.explain()
    assert "operands rounded to tf32" in program.explain()
    ran = simulate_program(program, tmp_path, inputs)
    assert ran.outputs is not None
    rounded = [_tf32(array).astype(np.float64) for array in inputs]
    expected = (rounded[0].T if transposed == "left" else rounded[0]) @ (
        rounded[1].T if transposed == "right" else rounded[1]
    )
    np.testing.assert_allclose(ran.outputs[0], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).mean())
    if shape == _ALIGNED:
        assert ran.kernels[0].shared_reads.conflicts == 0


@pytest.mark.parametrize("shape", [(128, 256, 256), (100, 77, 190)], ids=["whole tiles", "tails"])
def test_warpgroups_multiply_tf32(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """Operands are rounded before the product, where the instruction would truncate them."""
    product = Product.of(shape, "right", element="f32")
    model, inputs = product.build(), product.inputs()
    plan = tilewright.compile(model, "cuda:h200", numerics="tf32").plan
    assert plan is not None
    by_warpgroups(64, 128, label="wgmma_tf32-64x8")(plan)
    program = tilewright.compile(model, "cuda:h200", numerics="tf32", plan=plan, dump_dir=tmp_path)
    assert [op.micro_kernel for op in program.kernels[0].ops if op.micro_kernel] == ["wgmma_tf32-64x8"]
    assert "operands rounded to tf32" in program.explain()
    ran = simulate_program(program, tmp_path, inputs)
    assert ran.outputs is not None
    expected = _tf32(inputs[0]).astype(np.float64) @ _tf32(inputs[1]).astype(np.float64).T
    np.testing.assert_allclose(ran.outputs[0], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).mean())


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
    heads, rows, columns, kind = 4, 37, 64, _TYPES[element]
    g = GraphBuilder("projection")
    x = g.op("Transpose", g.input("heads", (heads, rows, size), kind), perm=[1, 0, 2])
    x = g.op("Reshape", x, g.constant(np.array([rows, heads * size], dtype=np.int64)))
    g.output(g.op("MatMul", x, g.input("weight", (heads * size, columns), kind)), (rows, columns), kind)
    model = g.build()
    rng = np.random.default_rng(3)
    inputs: list[Array] = [
        rng.standard_normal(shape).astype(_DTYPES[element])
        for shape in ((heads, rows, size), (heads * size, columns))
    ]
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    assert ("operand 0 copied 8 bytes at a time" in program.explain()) == (copied == "cp.async.ca")
    assert "element by element" not in program.explain()
    assert copied in (tmp_path / "kernels.ptx").read_text()
    ran = simulate_program(program, tmp_path, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    tolerance = _TOLERANCE[element]
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
    assert kept <= report.blocks * columns * _DTYPES[element].itemsize


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_main_loop_has_no_bank_conflicts(element: str, tmp_path: Path) -> None:
    """Operands are read in whole sectors, from DRAM once, and neither copies nor reads have bank conflicts."""
    report = run(Product(left=(128, 128), right=(128, 128), element=element), tmp_path).report
    assert report.shared_reads.conflicts == 0
    assert report.shared_writes.conflicts == 0
    assert report.global_reads.coalescing == 1
    assert report.dram_bytes_read == 2 * 128 * 128 * _DTYPES[element].itemsize


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
