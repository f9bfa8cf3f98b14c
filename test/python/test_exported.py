"""Exported programs, run by the library for C: the bits of the program in Python, and the signature."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright
from click.testing import CliRunner
from exported_cases import Opened
from exported_cases import library as library
from onnx import TensorProto
from tilewright.cli.main import cli
from tilewright.reference.drawing import random_inputs
from tilewright.runtime.exported import c_flags

from benchmarks.workloads import WORKLOADS, stitch
from benchmarks.workloads.builder import GraphBuilder

Array = np.ndarray[Any, Any]


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "deploy.c"


def _recurrence() -> Any:
    """Builds a GRU, whose loop runs without IREE."""
    g = GraphBuilder("recurrence")
    w, r = (g.weight((1, 3 * 17, size), fan_in=size) for size in (13, 17))
    y, last = g.ops("GRU", g.input("x", [5, 2, 13]), w, r, hidden_size=17, results=2)
    g.output(y, [5, 1, 2, 17])
    g.output(last, [1, 2, 17])
    return g.build()


def _narrow() -> Any:
    g = GraphBuilder("narrow")
    x = g.input("x", [33, 64], TensorProto.BFLOAT16)
    g.output(g.op("Softmax", x, axis=-1), [33, 64], TensorProto.BFLOAT16)
    return g.build()


@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["bert-small", "nerf"])
def test_a_model_has_the_same_bits_in_c(
    name: str, threads: int, library: ctypes.CDLL, tmp_path: Path
) -> None:
    """Among the weights are some that are laid out when the program is exported."""
    model = WORKLOADS[name].build()
    program = tilewright.compile(model, threads=[threads])
    arrays = random_inputs(model, 3)
    with Opened(library, program.export(tmp_path / "model.twp")) as opened:
        for _ in range(2):  # calls leave nothing behind
            assert opened.call(arrays) == [array.tobytes() for array in program(*arrays)]


def test_a_narrow_type_has_the_same_bits_in_c(library: ctypes.CDLL, tmp_path: Path) -> None:
    program = tilewright.compile(_narrow(), threads=1)
    x = np.random.default_rng(1).standard_normal((33, 64)).astype(ml_dtypes.bfloat16)
    with Opened(library, program.export(tmp_path / "narrow.twp")) as opened:
        assert opened.inputs[0].dtype == b"bfloat16"
        assert opened.call([x]) == [array.tobytes() for array in program(x)]


def test_a_loop_has_the_same_bits_in_c(library: ctypes.CDLL, tmp_path: Path) -> None:
    model = _recurrence()
    program = tilewright.compile(model, threads=1)
    launches = program.metadata.launches
    assert launches is not None and launches.loops
    arrays = random_inputs(model, 4)
    with Opened(library, program.export(tmp_path / "recurrence.twp")) as opened:
        assert opened.call(arrays) == [array.tobytes() for array in program(*arrays)]


def test_the_signature_is_the_models(library: ctypes.CDLL, tmp_path: Path) -> None:
    program = tilewright.compile(stitch.softmax((7, 129)), threads=1)
    with Opened(library, program.export(tmp_path / "softmax.twp")) as opened:
        assert program.signature is not None
        for tensors, specs in (
            (opened.inputs, program.signature.inputs),
            (opened.outputs, program.signature.outputs),
        ):
            assert [tensor.name.decode() for tensor in tensors] == [spec.name for spec in specs]
            assert [tuple(tensor.shape[: tensor.rank]) for tensor in tensors] == [
                spec.shape for spec in specs
            ]
        assert (opened.inputs[0].bytes, opened.inputs[0].alignment, opened.outputs[0].alignment) == (
            7 * 129 * 4,
            4,
            64,
        )
        assert not library.tw_input(opened.handle, 1)


def test_threads_may_be_others_than_planned(library: ctypes.CDLL, tmp_path: Path) -> None:
    program = tilewright.compile(stitch.softmax((64, 500)), threads=1)
    path = program.export(tmp_path / "softmax.twp")
    x = np.random.default_rng(2).standard_normal((64, 500), dtype=np.float32)
    with Opened(library, path, threads=3) as opened:
        assert opened.call([x]) == [program(x)[0].tobytes()]
    with pytest.raises(ValueError, match="65 threads are asked for; 1 to 64 are possible"):
        Opened(library, path, threads=65)


def _scaled() -> Any:
    """Builds relu(x · √gain), in which the root depends on a weight alone."""
    g = GraphBuilder("scaled")
    gain = g.op("Sqrt", g.constant(np.linspace(0.5, 2, 7, dtype=np.float32)))
    g.output(g.op("Relu", g.op("Mul", g.input("x", [5, 7]), gain)), [5, 7])
    return g.build()


def test_values_of_weights_are_computed_when_a_program_is_exported(
    library: ctypes.CDLL, tmp_path: Path
) -> None:
    program = tilewright.compile(_scaled(), threads=1)
    assert program.metadata.launches is not None
    assert program.metadata.launches.at_load
    arrays = [np.random.default_rng(4).standard_normal((5, 7)).astype(np.float32)]
    with Opened(library, program.export(tmp_path / "scaled.twp")) as opened:
        assert opened.call(arrays) == [array.tobytes() for array in program(*arrays)]


def test_values_of_weights_need_a_machine_that_can_compute_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tilewright.compile(_scaled(), target="x86-64-avx2", threads=1)
    monkeypatch.setattr("tilewright.runtime.exported.missing_features", lambda features: ["avx2"])
    with pytest.raises(tilewright.ProgramError, match="this machine lacks avx2"):
        program.export(tmp_path / "scaled.twp")


# Programs that IREE has to run are refused when they are exported.


@pytest.mark.parametrize(
    ("model", "target", "reason"),
    [
        (lambda: _running_sums(), "cpu", "IREE computes a part of it"),
        (lambda: stitch.softmax((7, 129)), "cuda:h200", "it runs on a GPU"),
        (lambda: _open_dims(), "cpu", "its shapes are open; give sizes for all dims"),
    ],
)
def test_what_needs_iree_is_not_exported(model: Any, target: str, reason: str, tmp_path: Path) -> None:
    program = tilewright.compile(model(), target, threads=1)
    with pytest.raises(tilewright.ProgramError, match=f"cannot be exported: {reason}"):
        program.export(tmp_path / "model.twp")
    assert list(tmp_path.iterdir()) == []


def _open_dims() -> Any:
    model = stitch.softmax((7, 129))
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "rows"
    return model


def _running_sums() -> Any:
    g = GraphBuilder("running_sums")
    g.output(g.op("CumSum", g.op("Relu", g.input("x", [4, 157])), g.ints([1])), [4, 157])
    return g.build()


def test_the_example_computes_what_python_does(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    assert compiler is not None, "the build needs a C compiler, too"
    model = WORKLOADS["bert-small"].build()
    program = tilewright.compile(model, threads=[2])
    arrays = random_inputs(model, 3)
    (tmp_path / "inputs").write_bytes(b"".join(array.tobytes() for array in arrays))
    build = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", str(EXAMPLE), *c_flags(), "-o", "deploy"]
    subprocess.run(build, cwd=tmp_path, check=True)
    path = program.export(tmp_path / "model.twp")
    ran = subprocess.run(
        ["./deploy", path, "inputs", "outputs"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "outputs").read_bytes() == b"".join(array.tobytes() for array in program(*arrays))
    refused = subprocess.run(["./deploy", "none.twp"], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr == "error: none.twp: it cannot be read: No such file or directory\n"


def test_the_library_needs_the_c_library_alone() -> None:
    path = next(flag[2:] for flag in c_flags() if flag.startswith("-L"))
    listed = subprocess.run(
        ["objdump", "-p", f"{path}/libtilewright_runtime.so"], capture_output=True, text=True, check=True
    )
    needed = {line.split()[1].split(".")[0] for line in listed.stdout.splitlines() if "NEEDED" in line}
    assert needed <= {"libc", "libm", "libdl", "libpthread", "ld-linux-x86-64"}


def test_the_command_exports_a_compiled_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tilewright.compile(stitch.softmax((7, 129)), threads=1)
    program.save("model.vmfb")
    result = CliRunner().invoke(cli, ["export", "model.vmfb"])
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("model.twp: 0.0 MB")
    assert Path("model.twp").read_bytes() == program.export(tmp_path / "again.twp").read_bytes()


def test_the_command_prints_flags_for_c() -> None:
    result = CliRunner().invoke(cli, ["export", "--cflags"])
    assert result.exit_code == 0
    assert result.stdout.split() == c_flags()
    assert all(Path(flag[2:]).is_dir() for flag in c_flags() if flag[:2] in ("-I", "-L"))
