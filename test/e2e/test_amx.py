"""Contractions in AMX's tile registers, which an emulator executes if the processor has none."""

from __future__ import annotations

import importlib
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from amx_cases import BF16_STEP, HAS_AMX, assert_rounded_once, bf16, bytes, compile, matmul, onnx_type, run
from onnx import TensorProto
from tilewright.pipelines import pass_text

from benchmarks.workloads.builder import GraphBuilder

Array = np.ndarray[Any, Any]


@pytest.fixture
def _granted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes kernels that are compiled from here on use tile registers without asking for permission."""
    stitch = importlib.import_module("tilewright.api.stitch")

    def assuming(argument: str, options: dict[str, Any]) -> str:
        return pass_text(argument, {**options, "assume-tiles": True})

    monkeypatch.setattr(stitch, "pass_text", assuming)


def _kernels_of(program: tilewright.Program) -> list[str]:
    return [op.micro_kernel for kernel in program.kernels for op in kernel.ops if op.micro_kernel]


def _run_on_tiles(model: onnx.ModelProto, *inputs: Array, kernel: str) -> list[Array]:
    """Runs a model that must be one kernel with all of its contractions in tiles."""
    program = compile(model)
    (only,) = program.kernels
    names = [op.micro_kernel for op in only.ops if op.micro_kernel]
    assert names, program.explain()
    assert all(name.startswith(f"{kernel}-32x") for name in names), names
    outputs, emulation = run(program, *inputs)
    assert HAS_AMX or emulation.counts["products"] > 0
    return outputs


@pytest.mark.lands(one_in=3)
@pytest.mark.usefixtures("_granted")
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "weight"),
    [(33, 64, 32, True), (7, 67, 65, True), (45, 193, 50, True), (7, 67, 65, False), (45, 193, 50, False)],
)
def test_bf16_of_odd_sizes(rows: int, depth: int, columns: int, *, weight: bool) -> None:
    rng = np.random.default_rng(3)
    left, right = bf16(rng, rows, depth), bf16(rng, depth, columns)
    inputs = (left,) if weight else (left, right)
    (got,) = _run_on_tiles(matmul(left, right, weight=weight), *inputs, kernel="amx_bf16")
    assert_rounded_once(got, left, right)


@pytest.mark.usefixtures("_granted")
@pytest.mark.parametrize(("left", "right"), [((2, 3, 9, 40), (3, 40, 70)), ((1, 80), (80, 33))], ids=str)
def test_bf16_batches(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    a, b = bf16(rng, *left), bf16(rng, *right)
    (got,) = _run_on_tiles(matmul(a, b, weight=True), a, kernel="amx_bf16")
    assert_rounded_once(got, a, b)


@pytest.mark.usefixtures("_granted")
def test_infinities_and_nan_stay_in_their_rows() -> None:
    """The padding of the last K step, and of the last panel's columns, is zero on both sides."""
    left, right = np.ones((9, 37), ml_dtypes.bfloat16), np.ones((37, 70), ml_dtypes.bfloat16)
    left[3, 36], left[6, 0] = np.inf, np.nan
    (got,) = _run_on_tiles(matmul(left, right, weight=True), left, kernel="amx_bf16")
    assert (np.delete(got, [3, 6], axis=0) == 37).all()
    assert np.isposinf(got[3].astype(np.float32)).all()
    assert np.isnan(got[6].astype(np.float32)).all()


@pytest.mark.usefixtures("_granted")
def test_an_epilogue_reads_the_sums() -> None:
    """This is a layer with bias, residual and activation; its 45 x 70 accumulators are whole tile blocks and
    remainders."""
    rng = np.random.default_rng(6)
    x, w, bias = bf16(rng, 45, 96), bf16(rng, 96, 70), bf16(rng, 70)
    residual = bf16(rng, 45, 70)
    g = GraphBuilder("layer")
    product = g.op("MatMul", g.input("x", x.shape, TensorProto.BFLOAT16), g.constant(w))
    shifted = g.op("Add", product, g.constant(bias))
    added = g.op("Add", shifted, g.input("r", residual.shape, TensorProto.BFLOAT16))
    g.output(g.op("Relu", added), residual.shape, TensorProto.BFLOAT16)
    (got,) = _run_on_tiles(g.build(), x, residual, kernel="amx_bf16")
    wide = [array.astype(np.float64) for array in (x, w, bias, residual)]
    exact = np.maximum(wide[0] @ wide[1] + wide[2] + wide[3], 0)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=2 * BF16_STEP, atol=1e-3)


def _attention(queries: int, keys: int, width: int) -> tuple[onnx.ModelProto, list[Array], Array]:
    rng = np.random.default_rng(13)
    g = GraphBuilder("attention")
    shapes = {"q": (2, queries, width), "k": (2, keys, width), "v": (2, keys, width)}
    q, k, v = (g.input(name, shape, TensorProto.BFLOAT16) for name, shape in shapes.items())
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1]))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), shapes["q"], TensorProto.BFLOAT16)
    arrays = [bf16(rng, *shape) for shape in shapes.values()]
    arrays[0] = (arrays[0].astype(np.float32) / 8).astype(ml_dtypes.bfloat16)
    wide = [array.astype(np.float64) for array in arrays]
    weights = wide[0] @ wide[1].transpose(0, 2, 1)
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    return g.build(), arrays, weights / weights.sum(axis=-1, keepdims=True) @ wide[2]


def _layers(rows: int, terms: int, hidden: int, lanes: int) -> tuple[onnx.ModelProto, list[Array], Array]:
    rng = np.random.default_rng(14)
    g = GraphBuilder("layers")
    x, first, second = (bf16(rng, *shape) for shape in ((rows, terms), (terms, hidden), (hidden, lanes)))
    inner = g.op("Relu", g.op("MatMul", g.input("x", x.shape, TensorProto.BFLOAT16), g.constant(first)))
    g.output(g.op("MatMul", inner, g.constant(second)), (rows, lanes), TensorProto.BFLOAT16)
    exact = np.maximum(x.astype(np.float64) @ first.astype(np.float64), 0) @ second.astype(np.float64)
    return g.build(), [x], exact


@pytest.mark.usefixtures("_granted")
@pytest.mark.parametrize(
    ("chain", "sizes"),
    [(_attention, (70, 137, 40)), (_layers, (70, 96, 160, 64))],
    ids=["attention", "layers"],
)
def test_chains_are_one_kernel_on_tiles(chain: Any, sizes: tuple[int, ...]) -> None:
    """The first contraction's result is in bf16 for the second, so each of its terms has one rounding."""
    model, inputs, exact = chain(*sizes)
    (got,) = _run_on_tiles(model, *inputs, kernel="amx_bf16")
    np.testing.assert_allclose(got.astype(np.float64), exact, atol=3 * BF16_STEP * np.abs(exact).max())


def test_strict_numerics_take_no_kernel_that_flushes() -> None:
    rng = np.random.default_rng(7)
    program = compile(matmul(bf16(rng, 9, 40), bf16(rng, 40, 33), weight=True), numerics="strict")
    assert not any(name.startswith("amx") for name in _kernels_of(program))


@pytest.mark.lands(one_in=3)
@pytest.mark.usefixtures("_granted")
@pytest.mark.parametrize(
    ("left", "right", "sizes", "weight"),
    [
        (np.uint8, np.int8, (45, 131, 50), True),
        (np.uint8, np.uint8, (33, 128, 32), True),
        (np.int8, np.uint8, (5, 65, 17), True),
        (np.int8, np.int8, (45, 131, 50), False),
    ],
)
def test_bytes_are_exact(left: type, right: type, sizes: tuple[int, int, int], *, weight: bool) -> None:
    rng = np.random.default_rng(8)
    rows, depth, columns = sizes
    a, b = bytes(rng, left, rows, depth), bytes(rng, right, depth, columns)
    g = GraphBuilder("product")
    left_operand = g.input("a", a.shape, onnx_type(a))
    right_operand = g.constant(b) if weight else g.input("b", b.shape, onnx_type(b))
    zeros = [g.constant(np.zeros((), kind)) for kind in (left, right)]
    g.output(g.op("MatMulInteger", left_operand, right_operand, *zeros), (rows, columns), TensorProto.INT32)
    inputs = (a,) if weight else (a, b)
    (got,) = _run_on_tiles(g.build(), *inputs, kernel="amx_int8")
    np.testing.assert_array_equal(got, a.astype(np.int64) @ b.astype(np.int64))
