"""Tests of contractions of bytes and in tf32, on the simulated device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from simulated_products import (
    ALIGNED,
    ODD,
    Product,
    by_warpgroups,
)
from tilewright.errors import PlanError
from tilewright.records.signature import Array
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)

_BYTES: dict[str, tuple[int, type]] = {"s": (TensorProto.INT8, np.int8), "u": (TensorProto.UINT8, np.uint8)}


@pytest.mark.parametrize(
    ("shape", "transposed", "signs"),
    [
        (ALIGNED, "neither", "ss"),
        (ALIGNED, "right", "us"),
        (ALIGNED, "left", "su"),
        (ODD, "neither", "us"),
        (ODD, "both", "ss"),
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
    """Operands that would have to be transposed are multiplied by warps, and by warpgroups in no plan."""
    model, _, _ = _product_of_bytes((64, 96, 128), transposed, "ss")
    plan = tilewright.compile(model, "cuda:h200").plan
    assert plan is not None
    assert [op.micro_kernel for op in plan.kernels[0].groups[0].ops if op.micro_kernel] == ["mma_sync-16x8"]
    by_warpgroups(64, 128)(plan)
    with pytest.raises(PlanError, match=r"cannot be 'wgmma-64x8': .*; 'mma_sync-16x8' can compute it"):
        tilewright.compile(model, "cuda:h200", plan=plan)


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
    [(ALIGNED, "neither"), (ALIGNED, "right"), (ODD, "left"), ((2, 512, 64), "neither")],
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
    if shape == ALIGNED:
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
