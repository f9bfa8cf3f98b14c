"""Tests of one program for several instruction sets: each variant gives the right numbers, the processor selects it,
and the narrowest variant has no wider instruction.

Two ways force a variant: the kernels are called with chosen feature bits in the environment that IREE's runtime would
fill, and IREE's own tool runs whole programs on an emulated processor, which crashes on an instruction that it lacks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import iree._runtime_libs
import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from compiled import Compiled, compiled
from tilewright.ir.module import Module
from tilewright.iree.text import from_iree
from tilewright.pipelines import pass_text, pipeline
from tilewright.runtime.kernels import Kernel, buffer, load_kernels
from tilewright.runtime.processor import missing_features

from benchmarks.workloads import stitch
from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.narrow import to_narrow

TARGETS = ("x86-64-avx512", "x86-64-avx2", "x86-64-v2")
# The bits are those of IREE's cpu_data.h: SSE3 to SSE4.2; AVX, FMA, F16C, AVX2; AVX-512 F, CD, VL, DQ, BW.
_SSE = 0xF
_AVX2 = _SSE | 1 << 10 | 1 << 11 | 1 << 14 | 1 << 15
_AVX512 = _AVX2 | 0x1F << 20
BITS = {"x86-64-v2": _SSE, "x86-64-avx2": _AVX2, "x86-64-avx512": _AVX512}
ROWS, COLUMNS = 7, 37
OBJDUMP = "/usr/lib/llvm-22/bin/llvm-objdump"

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """Softmax for all targets: the program, and its kernel alone."""

    program: tilewright.Program
    object: Path
    kernel: Kernel
    x: Array
    expected: Array


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    e = np.exp(x.astype(np.float64))
    folder = tmp_path_factory.mktemp("variants")
    with compiled(stitch.softmax((ROWS, COLUMNS)), target=",".join(TARGETS)) as result:
        kernel = kernel_of(result, folder)
        expected = e / e.sum(axis=-1, keepdims=True)
        yield Case(result.program, folder / "kernels.o", kernel, x, expected)


def kernel_of(result: Compiled, folder: Path, targets: tuple[str, ...] = TARGETS) -> Kernel:
    """Returns the only kernel of a program for these targets, separate from the program."""
    module = Module.parse(from_iree((result.folder / "2-preprocessing.mlir").read_text()))
    files = {"object-path": folder / "kernels.o", "manifest": folder / "manifest.json"}
    options: dict[str, Any] = {name: str(path) for name, path in files.items()}
    options |= {"target": targets[0], "variants": targets[1:], "plan-in": str(result.folder / "plan.json")}
    module.run_unrecorded(pipeline(pass_text("tilewright-cpu", options)))
    (kernel,) = load_kernels(files["object-path"], files["manifest"])
    return kernel


def call(case: Case, *, processor: int) -> Array:
    """Returns the kernel's output on a processor with these features."""
    storage, address = buffer(case.expected.nbytes // 2)
    case.kernel.run([case.x.ctypes.data, address], processor=processor)
    start = address - storage.ctypes.data
    return storage[start : start + case.expected.nbytes // 2].view(np.float32).reshape(ROWS, COLUMNS)


@pytest.mark.parametrize("target", TARGETS)
def test_each_variant_gives_the_right_numbers(case: Case, target: str) -> None:
    if missing_features(tilewright.Target.lookup(target).features):
        pytest.skip(f"this machine cannot run {target}")
    np.testing.assert_allclose(call(case, processor=BITS[target]), case.expected, rtol=1e-6)


def test_packed_weights_serve_each_variant(tmp_path: Path) -> None:
    """Weights are packed for the widest variant: in panels of 64 columns, the last of which is padded."""
    g = GraphBuilder("product")
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((13, 65), (65, 150)))
    g.output(g.op("MatMul", g.input("x", x.shape), g.constant(w)), (13, 150))
    packed = np.pad(w, ((0, 0), (0, 42))).reshape(65, 3, 64).transpose(1, 0, 2).copy()
    with compiled(g.build(), target=",".join(TARGETS)) as result:
        kernel = kernel_of(result, tmp_path)
        assert kernel.binding_bytes[:2] == [x.nbytes, packed.nbytes]
        for target in TARGETS:
            if missing_features(tilewright.Target.lookup(target).features):
                continue
            storage, address = buffer(13 * 150 * 4)
            kernel.run([x.ctypes.data, packed.ctypes.data, address], processor=BITS[target])
            start = address - storage.ctypes.data
            y = storage[start : start + 13 * 150 * 4].view(np.float32).reshape(13, 150)
            np.testing.assert_allclose(y, x.astype(np.float64) @ w, rtol=1e-4, atol=1e-4, err_msg=target)


def test_a_turned_operand_serves_each_variant(tmp_path: Path) -> None:
    """K is contiguous, as the widest variant reads it; rows of 43 lanes are padded to its vectors."""
    rng = np.random.default_rng(4)
    q, k = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((70, 20), (43, 20)))
    g = GraphBuilder("scores")
    scores = g.op("MatMul", g.input("q", q.shape), g.op("Transpose", g.input("k", k.shape), perm=[1, 0]))
    g.output(scores, (70, 43))
    targets = ("x86-64-avx512bf16", "x86-64-avx2", "x86-64-v2")
    with compiled(to_narrow(g.build(), "bf16"), target=",".join(targets)) as result:
        kernel = kernel_of(result, tmp_path, targets)
        for target in targets[1:]:
            if missing_features(tilewright.Target.lookup(target).features):
                continue
            storage, address = buffer(70 * 43 * 2)
            bindings = {q.nbytes: q.ctypes.data, k.nbytes: k.ctypes.data, 70 * 43 * 2: address}
            kernel.run([bindings[size] for size in kernel.binding_bytes], processor=BITS[target])
            start = address - storage.ctypes.data
            y = storage[start : start + 70 * 43 * 2].view(ml_dtypes.bfloat16).reshape(70, 43)
            expected = q.astype(np.float64) @ k.astype(np.float64).T
            np.testing.assert_allclose(y.astype(np.float64), expected, rtol=2**-8, atol=1e-4, err_msg=target)


def test_a_processor_between_two_variants_takes_the_narrower(case: Case) -> None:
    between = call(case, processor=_AVX2 & ~(1 << 11))  # no FMA, which the second variant needs
    np.testing.assert_array_equal(between, call(case, processor=_SSE))


def test_a_processor_that_no_variant_fits_gets_an_error(case: Case) -> None:
    with pytest.raises(RuntimeError, match="failed"):
        call(case, processor=_SSE & ~1)


def instructions(case: Case) -> dict[str, str]:
    """Disassembles every function of the object file."""
    listing = subprocess.run(
        [OBJDUMP, "-d", "--no-show-raw-insn", str(case.object)], capture_output=True, text=True, check=True
    ).stdout
    parts = re.split(r"^[0-9a-f]+ <(.*)>:$", listing, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_no_variant_has_wider_instructions_than_its_target(case: Case) -> None:
    code = instructions(case)
    name = case.kernel.name
    assert set(code) == {name, *(f"{name}.{target}" for target in TARGETS)}
    vex = re.compile(r"\tv[a-z]|%[yz]mm|%k[0-7]")
    for narrow in (name, f"{name}.x86-64-v2"):
        assert not vex.search(code[narrow]), narrow
    assert "%xmm" in code[f"{name}.x86-64-v2"]
    assert not re.search(r"%zmm|%k[0-7]|%[xy]mm(1[6-9]|[23]\d)", code[f"{name}.x86-64-avx2"])
    assert "%ymm" in code[f"{name}.x86-64-avx2"]
    assert "%zmm" in code[f"{name}.x86-64-avx512"]


def test_the_program_runs_here_and_says_what_it_is(case: Case, tmp_path: Path) -> None:
    np.testing.assert_allclose(case.program(case.x)[0], case.expected, rtol=1e-6)
    again = tilewright.load(case.program.save(tmp_path / "softmax.vmfb"))
    np.testing.assert_array_equal(again(case.x)[0], case.program(case.x)[0])
    assert list(again.metadata.variants) == list(TARGETS[:-1])
    text = again.explain()
    assert f"3 variants of each fused kernel, the first that fits the processor: {', '.join(TARGETS)}" in text
    assert "IREE's own kernels are for x86-64-v2" in text


def test_a_machine_without_the_narrowest_is_told_so(
    case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = case.program.save(tmp_path / "softmax.vmfb")
    monkeypatch.setattr(
        "tilewright.runtime.processor._processor_flags", lambda: frozenset({"ssse3", "sse41", "popcnt"})
    )
    with pytest.raises(tilewright.ProgramError, match=r"lacks sse4\.2"):
        tilewright.load(path)


# The tests below use an emulated processor.


def run_on(processor: str, program: tilewright.Program, x: Array, folder: Path) -> Array | None:
    """Returns the program's output under IREE's own tool on an emulated processor, or None if that crashes."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("qemu-user is not installed")
    module = program.save(folder / "program.vmfb")
    np.save(folder / "x.npy", x)
    tool = Path(iree._runtime_libs.__path__[0]) / "iree-run-module"
    command = [emulator, "-cpu", processor, str(tool), "--device=local-sync", f"--module={module}"]
    command += [
        f"--function={program.metadata.entry}",
        f"--input=@{folder / 'x.npy'}",
        f"--output=@{folder / 'y.npy'}",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode < 0:
        return None
    assert result.returncode == 0, result.stderr
    return np.asarray(np.load(folder / "y.npy"))


@pytest.mark.parametrize("processor", ["Nehalem", "Haswell"])
def test_a_processor_without_the_wider_sets_runs_the_program(
    case: Case, processor: str, tmp_path: Path
) -> None:
    y = run_on(processor, case.program, case.x, tmp_path)
    assert y is not None, "it crashed"
    np.testing.assert_allclose(y, case.expected, rtol=1e-6)


def test_the_emulated_processor_does_lack_them(case: Case, tmp_path: Path) -> None:
    with compiled(stitch.softmax((ROWS, COLUMNS)), target="x86-64-avx512") as result:
        assert run_on("Haswell", result.program, case.x, tmp_path) is None


# The tests below cover operations for which x86-64-v2 has no instructions.


def test_f16_is_converted_exactly_without_instructions_for_it() -> None:
    """This converts all 2^16 numbers to f32; and all midpoints between neighbours, with the numbers closest to them,
    to f16."""
    text = """
    func.func @convert(%h: tensor<65536xf16>, %w: tensor<196608xf32>) -> (tensor<65536xf32>, tensor<196608xf16>) {
      %i0 = tensor.empty() : tensor<65536xf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%h : tensor<65536xf16>) outs(%i0 : tensor<65536xf32>) {
      ^bb0(%a: f16, %o: f32):
        %x = arith.extf %a : f16 to f32
        %n = arith.negf %x : f32
        linalg.yield %n : f32
      } -> tensor<65536xf32>
      %i1 = tensor.empty() : tensor<196608xf16>
      %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%w : tensor<196608xf32>) outs(%i1 : tensor<196608xf16>) {
      ^bb0(%a: f32, %o: f16):
        %n = arith.negf %a : f32
        %x = arith.truncf %n : f32 to f16
        linalg.yield %x : f16
      } -> tensor<196608xf16>
      return %0, %1 : tensor<65536xf32>, tensor<196608xf16>
    }"""
    program = tilewright.compile(text, "x86-64-v2", threads=1, strict=True)
    assert program.kernels and not program.metadata.report.left_to_iree
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = (halves.astype(np.float64) + np.nextafter(halves, np.float16(np.inf)).astype(np.float64)) / 2
        middle = middle.astype(np.float32)
        above, below = (np.nextafter(middle, np.float32(end)) for end in (np.inf, -np.inf))
        wide = np.concatenate([middle, above, below])
        narrow = (-wide).astype(np.float16)
    to_wide, to_narrow = program(halves, wide)
    np.testing.assert_array_equal(to_wide, -halves.astype(np.float32))
    np.testing.assert_array_equal(to_narrow, narrow)
    np.testing.assert_array_equal(np.signbit(to_narrow), np.signbit(narrow))


def test_a_target_list_is_checked() -> None:
    model = onnx.ModelProto()
    for targets, message in [
        ("cpu,x86-64-avx2", "cannot be one of several"),
        ((), "no target given"),
        ("x86-64-avx2,sm_80", "are not of the same kind"),
        ("x86-64-avx2,vax", "unknown target 'vax'"),
    ]:
        with pytest.raises(tilewright.TargetError, match=message):
            tilewright.compile(model, targets)
