"""Tests of contractions in AMX's tile registers, which an emulator executes if the processor has none, and of the
permission that kernels request before they use them.

Programs are compiled for this machine with AMX added. The option `assume-tiles` omits the request; it is an option of
the pass that no caller of the compiler sets.
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from amx_emulator import Emulated, build, emulated
from onnx import TensorProto
from tilewright.ir.module import Module
from tilewright.iree.text import from_iree
from tilewright.pipelines import pass_text, pipeline
from tilewright.runtime.kernels import buffer, load_kernels
from tilewright.runtime.processor import missing_features
from tilewright.runtime.session import Session

from benchmarks.workloads.builder import GraphBuilder

Array = np.ndarray[Any, Any]
_BF16_STEP = 2.0**-8  # half of a unit in the last place
_AMX = ("amx-tile", "amx-bf16", "amx-int8")
_HAS_AMX = not missing_features(",".join(f"+{feature}" for feature in _AMX))
_INSTRUCTIONS = Path(__file__).with_name("amx_instructions.c")
_FLAGS = tuple(f"-m{feature}" for feature in _AMX)


def _plain_target() -> tilewright.Target:
    """Returns the widest known target that runs on this machine."""
    names = ("x86-64-avx512bf16", "x86-64-avx512", "x86-64-avx2", "x86-64-v2")
    targets = [tilewright.Target.lookup(name) for name in names]
    return next(target for target in targets if not missing_features(target.features))


def _amx_target() -> tilewright.Target:
    plain = _plain_target()
    features = ",".join([plain.features, *(f"+{feature}" for feature in _AMX)])
    return dataclasses.replace(plain, name="amx-emulated", features=features)


@pytest.fixture
def _granted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes kernels that are compiled from here on use tile registers without asking for permission."""
    stitch = importlib.import_module("tilewright.api.stitch")

    def assuming(argument: str, options: dict[str, Any]) -> str:
        return pass_text(argument, {**options, "assume-tiles": True})

    monkeypatch.setattr(stitch, "pass_text", assuming)


def _session(program: tilewright.Program) -> Session:
    """Loads a program although this machine lacks instructions that it was compiled for."""
    meta = program.metadata
    return Session(program.module_path, program.parameter_paths, entry=meta.entry, threads=meta.threads)


def _run(program: tilewright.Program, *inputs: Array) -> tuple[list[Array], Emulated]:
    session = _session(program)
    with emulated() as emulation:
        outputs = session(inputs, program.metadata.signature)
    assert not emulation.error
    return outputs, emulation


def _kernels_of(program: tilewright.Program) -> list[str]:
    return [op.micro_kernel for kernel in program.kernels for op in kernel.ops if op.micro_kernel]


def _compile(model: onnx.ModelProto, **options: Any) -> tilewright.Program:
    return tilewright.compile(model, _amx_target(), threads=1, tuning=False, **options)


def _run_on_tiles(model: onnx.ModelProto, *inputs: Array, kernel: str) -> list[Array]:
    """Runs a model that must be one kernel with all of its contractions in tiles."""
    program = _compile(model)
    (only,) = program.kernels
    names = [op.micro_kernel for op in only.ops if op.micro_kernel]
    assert names, program.explain()
    assert all(name.startswith(f"{kernel}-32x") for name in names), names
    outputs, emulation = _run(program, *inputs)
    assert _HAS_AMX or emulation.counts["products"] > 0
    return outputs


def _bf16(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


def _onnx_type(array: Array) -> int:
    return onnx.helper.np_dtype_to_tensor_dtype(array.dtype)


def _matmul(left: Array, right: Array, *, weight: bool) -> onnx.ModelProto:
    g = GraphBuilder("product")
    a = g.input("a", left.shape, _onnx_type(left))
    b = g.constant(right) if weight else g.input("b", right.shape, _onnx_type(right))
    shape = np.matmul(left.astype(np.float32), right.astype(np.float32)).shape
    g.output(g.op("MatMul", a, b), shape, _onnx_type(left))
    return g.build()


def _assert_rounded_once(got: Array, left: Array, right: Array) -> None:
    exact = left.astype(np.float64) @ right.astype(np.float64)
    terms = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64))
    error = np.abs(got.astype(np.float64) - exact)
    # The result has one rounding, and each of its terms one of f32.
    assert (error <= np.abs(exact) * _BF16_STEP + terms * left.shape[-1] * 2.0**-23 + 1e-37).all()


# ---------------------------------------------------------------------------------------------------- bf16


@pytest.mark.usefixtures("_granted")
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "weight"),
    [(33, 64, 32, True), (7, 67, 65, True), (45, 193, 50, True), (7, 67, 65, False), (45, 193, 50, False)],
)
def test_bf16_of_odd_sizes(rows: int, depth: int, columns: int, *, weight: bool) -> None:
    rng = np.random.default_rng(3)
    left, right = _bf16(rng, rows, depth), _bf16(rng, depth, columns)
    inputs = (left,) if weight else (left, right)
    (got,) = _run_on_tiles(_matmul(left, right, weight=weight), *inputs, kernel="amx_bf16")
    _assert_rounded_once(got, left, right)


@pytest.mark.usefixtures("_granted")
@pytest.mark.parametrize(("left", "right"), [((2, 3, 9, 40), (3, 40, 70)), ((1, 80), (80, 33))], ids=str)
def test_bf16_batches(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    a, b = _bf16(rng, *left), _bf16(rng, *right)
    (got,) = _run_on_tiles(_matmul(a, b, weight=True), a, kernel="amx_bf16")
    _assert_rounded_once(got, a, b)


@pytest.mark.usefixtures("_granted")
def test_infinities_and_nan_stay_in_their_rows() -> None:
    """The padding of the last K step, and of the last panel's columns, is zero on both sides."""
    left, right = np.ones((9, 37), ml_dtypes.bfloat16), np.ones((37, 70), ml_dtypes.bfloat16)
    left[3, 36], left[6, 0] = np.inf, np.nan
    (got,) = _run_on_tiles(_matmul(left, right, weight=True), left, kernel="amx_bf16")
    assert (np.delete(got, [3, 6], axis=0) == 37).all()
    assert np.isposinf(got[3].astype(np.float32)).all()
    assert np.isnan(got[6].astype(np.float32)).all()


@pytest.mark.usefixtures("_granted")
def test_an_epilogue_reads_the_sums() -> None:
    """This is a layer with bias, residual and activation; its 45 x 70 accumulators are whole tile blocks and
    remainders."""
    rng = np.random.default_rng(6)
    x, w, bias = _bf16(rng, 45, 96), _bf16(rng, 96, 70), _bf16(rng, 70)
    residual = _bf16(rng, 45, 70)
    g = GraphBuilder("layer")
    product = g.op("MatMul", g.input("x", x.shape, TensorProto.BFLOAT16), g.constant(w))
    shifted = g.op("Add", product, g.constant(bias))
    added = g.op("Add", shifted, g.input("r", residual.shape, TensorProto.BFLOAT16))
    g.output(g.op("Relu", added), residual.shape, TensorProto.BFLOAT16)
    (got,) = _run_on_tiles(g.build(), x, residual, kernel="amx_bf16")
    wide = [array.astype(np.float64) for array in (x, w, bias, residual)]
    exact = np.maximum(wide[0] @ wide[1] + wide[2] + wide[3], 0)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=2 * _BF16_STEP, atol=1e-3)


def _attention(queries: int, keys: int, width: int) -> tuple[onnx.ModelProto, list[Array], Array]:
    rng = np.random.default_rng(13)
    g = GraphBuilder("attention")
    shapes = {"q": (2, queries, width), "k": (2, keys, width), "v": (2, keys, width)}
    q, k, v = (g.input(name, shape, TensorProto.BFLOAT16) for name, shape in shapes.items())
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1]))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), shapes["q"], TensorProto.BFLOAT16)
    arrays = [_bf16(rng, *shape) for shape in shapes.values()]
    arrays[0] = (arrays[0].astype(np.float32) / 8).astype(ml_dtypes.bfloat16)
    wide = [array.astype(np.float64) for array in arrays]
    weights = wide[0] @ wide[1].transpose(0, 2, 1)
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    return g.build(), arrays, weights / weights.sum(axis=-1, keepdims=True) @ wide[2]


def _layers(rows: int, terms: int, hidden: int, lanes: int) -> tuple[onnx.ModelProto, list[Array], Array]:
    rng = np.random.default_rng(14)
    g = GraphBuilder("layers")
    x, first, second = (_bf16(rng, *shape) for shape in ((rows, terms), (terms, hidden), (hidden, lanes)))
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
    np.testing.assert_allclose(got.astype(np.float64), exact, atol=3 * _BF16_STEP * np.abs(exact).max())


def test_strict_numerics_take_no_kernel_that_flushes() -> None:
    rng = np.random.default_rng(7)
    program = _compile(_matmul(_bf16(rng, 9, 40), _bf16(rng, 40, 33), weight=True), numerics="strict")
    assert not any(name.startswith("amx") for name in _kernels_of(program))


# --------------------------------------------------------------------------------------------------- bytes


def _bytes(rng: np.random.Generator, dtype: type, *shape: int) -> Array:
    info = np.iinfo(dtype)
    value = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    value.flat[0], value.flat[-1] = info.min, info.max
    return value


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
    a, b = _bytes(rng, left, rows, depth), _bytes(rng, right, depth, columns)
    g = GraphBuilder("product")
    left_operand = g.input("a", a.shape, _onnx_type(a))
    right_operand = g.constant(b) if weight else g.input("b", b.shape, _onnx_type(b))
    zeros = [g.constant(np.zeros((), kind)) for kind in (left, right)]
    g.output(g.op("MatMulInteger", left_operand, right_operand, *zeros), (rows, columns), TensorProto.INT32)
    inputs = (a,) if weight else (a, b)
    (got,) = _run_on_tiles(g.build(), *inputs, kernel="amx_int8")
    np.testing.assert_array_equal(got, a.astype(np.int64) @ b.astype(np.int64))


# ---------------------------------------------------------------------------------------------- permission


@pytest.mark.skipif(_HAS_AMX, reason="this machine grants AMX")
def test_without_tiles_another_variant_runs(tmp_path: Path) -> None:
    """In the last step the processor reports AMX, but the operating system does not grant it.

    Weights are packed as tiles read them: pairs along K, in blocks of 32 columns, padded to K steps of 32.
    """
    rng = np.random.default_rng(9)
    a, b = _bf16(rng, 13, 67), _bf16(rng, 67, 75)
    targets = [_amx_target(), _plain_target()]
    program = tilewright.compile(
        _matmul(a, b, weight=True), targets, threads=1, tuning=False, dump_dir=tmp_path / "dump"
    )
    (got,), emulation = _run(program, a)
    _assert_rounded_once(got, a, b)
    assert sum(emulation.counts.values()) == 0

    packed = np.pad(b, ((0, 29), (0, 21))).reshape(48, 2, 3, 32).transpose(2, 0, 3, 1).copy()
    for assume, runs_on_tiles in ((False, False), (True, True)):
        kernel = _kernel(tmp_path, targets, assume=assume)
        assert kernel.binding_bytes[:2] == [a.nbytes, packed.nbytes]
        got, counts = _call(kernel, a, packed, columns=75)
        _assert_rounded_once(got, a, b)
        assert (counts["products"] > 0) == runs_on_tiles
        assert runs_on_tiles or sum(counts.values()) == 0


def _kernel(folder: Path, targets: Sequence[tilewright.Target], *, assume: bool) -> Any:
    """Returns the only kernel of the program whose intermediate forms are in the folder, separate from the program."""
    module = Module.parse(from_iree((folder / "dump" / "2-preprocessing.mlir").read_text()))
    files = [folder / f"{target.name}.json" for target in targets]
    for file, target in zip(files, targets, strict=True):
        file.write_text(json.dumps(target.to_json()))
    options: dict[str, Any] = {
        "object-path": str(folder / f"kernels-{assume}.o"),
        "manifest": str(folder / f"manifest-{assume}.json"),
        "target": str(files[0]),
        "variants": [str(file) for file in files[1:]],
        "plan-in": str(folder / "dump" / "plan.json"),
        "assume-tiles": assume,
    }
    module.run_unrecorded(pipeline(pass_text("tilewright-cpu", options)))
    (kernel,) = load_kernels(Path(options["object-path"]), Path(options["manifest"]))
    return kernel


def _call(kernel: Any, a: Array, packed: Array, *, columns: int) -> tuple[Array, dict[str, int]]:
    """Calls the kernel as on a processor that has all features that the runtime can report."""
    shape = (a.shape[0], columns)
    size = 2 * a.shape[0] * columns
    storage, address = buffer(size)
    with emulated() as emulation:
        kernel.run([a.ctypes.data, packed.ctypes.data, address], processor=(1 << 63) - 1)
    assert not emulation.error
    start = address - storage.ctypes.data
    return storage[start : start + size].view(ml_dtypes.bfloat16).reshape(shape), emulation.counts


@pytest.mark.skipif(_HAS_AMX, reason="this machine grants AMX")
def test_without_tiles_and_variants_the_program_says_so() -> None:
    rng = np.random.default_rng(10)
    a, b = _bf16(rng, 13, 67), _bf16(rng, 67, 75)
    program = _compile(_matmul(a, b, weight=True))
    session = _session(program)
    with emulated() as emulation, pytest.raises(tilewright.ProgramError, match="failed while running"):
        session([a], program.metadata.signature)
    assert sum(emulation.counts.values()) == 0
    with pytest.raises(tilewright.ProgramError, match="amx"):
        program(a)


# ------------------------------------------------------------------------------------------- the emulator


@pytest.fixture(scope="module")
def _instructions() -> Iterator[ctypes.CDLL]:
    yield build(_INSTRUCTIONS, *_FLAGS)


def _product(library: ctypes.CDLL, name: str, sums: Array, a: Array, b: Array) -> None:
    """Runs one instruction: `a` is [M, K]; `b` is [K / group, N, group]."""
    getattr(library, name)(
        sums.ctypes.data_as(ctypes.c_void_p),
        a.ctypes.data_as(ctypes.c_void_p),
        b.ctypes.data_as(ctypes.c_void_p),
        a.shape[0],
        b.shape[0],
        b.shape[1],
    )


def test_emulated_pairs(_instructions: ctypes.CDLL) -> None:
    """Even and odd elements along K have separate accumulators, and each product is fused with its sum; subnormal
    numbers count as zero."""
    rng = np.random.default_rng(11)
    a, b = _bf16(rng, 3, 10), _bf16(rng, 5, 7, 2)
    a[0, 0], b[0, 0, 0] = 1e-39, 1e38  # subnormal: the product would not be
    sums = rng.standard_normal((3, 7)).astype(np.float32)
    sums[1, 1] = 1e-40
    expected = np.where(np.abs(sums) < 2.0**-126, 0, sums)
    flushed = np.where(np.abs(a.astype(np.float64)) < 2.0**-126, 0, a.astype(np.float64))
    parts = np.zeros((2, 3, 7), np.float32)
    for group in range(5):
        for odd in (0, 1):
            # The product is exact in f64, so it is rounded once.
            products = flushed[:, None, 2 * group + odd] * b[group, None, :, odd].astype(np.float64)
            parts[odd] = (parts[odd] + products).astype(np.float32)
    expected = expected.astype(np.float32) + (parts[0] + parts[1])
    with emulated() as emulation:
        _product(_instructions, "pairs", sums, a, b)
    assert not emulation.error
    np.testing.assert_allclose(sums, expected, rtol=2.0**-23)


@pytest.mark.parametrize("left", [np.int8, np.uint8])
@pytest.mark.parametrize("right", [np.int8, np.uint8])
def test_emulated_quads(_instructions: ctypes.CDLL, left: type, right: type) -> None:
    rng = np.random.default_rng(12)
    a, b = _bytes(rng, left, 3, 20), _bytes(rng, right, 5, 7, 4)
    sums = rng.integers(-100, 100, (3, 7)).astype(np.int32)
    terms = b.astype(np.int64).transpose(0, 2, 1).reshape(20, 7)
    expected = sums + a.astype(np.int64) @ terms
    signs = "".join("s" if np.issubdtype(kind, np.signedinteger) else "u" for kind in (left, right))
    with emulated() as emulation:
        _product(_instructions, f"quads_{signs}", sums, a, b)
    assert not emulation.error
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.skipif(_HAS_AMX, reason="this machine has instructions of its own")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("tiles_that_do_not_fit", "do not fit together"),
        ("tile_without_a_shape", "not configured"),
        ("impossible_shape", "no possible shape"),
    ],
)
def test_what_the_processor_refuses_is_an_error(
    _instructions: ctypes.CDLL, function: str, message: str
) -> None:
    with emulated() as emulation:
        getattr(_instructions, function)()
    assert message in emulation.error
