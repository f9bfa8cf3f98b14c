"""The command line: conventions, exit codes, one-line errors."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from click.testing import CliRunner, Result
from conftest import HIDDEN, ROWS
from onnx import TensorProto, helper
from tilewright.cli.main import cli

Array = np.ndarray[Any, Any]

TWICE = """
func.func @twice(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = arith.addf %x, %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}"""


def invoke(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin)


def tilewright_process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tilewright", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, **options)


def test_help_names_every_command() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for command in ("compile", "run", "explain", "doctor", "targets"):
        assert command in result.output


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    code = "import sys, tilewright.cli.main; print([m for m in ('onnx', 'iree', 'numpy', 'rich') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


# compile


def test_compile_writes_beside_the_current_folder(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("compile", model_path, "--threads", "1")
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "attention.irpa",
        "attention.json",
        "attention.vmfb",
    ]
    assert "1 fused kernels" in result.stderr
    assert result.stdout == ""


def test_compile_reads_stdin_and_writes_stdout(tmp_path: Path) -> None:
    result = tilewright_process("compile", "-", "-o", "-", "--threads", "1", input=TWICE.encode())
    assert result.returncode == 0, result.stderr
    path = tmp_path / "twice.vmfb"
    path.write_bytes(result.stdout)
    np.testing.assert_array_equal(tilewright.load(path)(np.ones((3, 5), np.float32))[0], np.full((3, 5), 2))


def test_compile_to_stdout_refuses_weights(model_path: Path) -> None:
    result = invoke("compile", model_path, "-o", "-", "--threads", "1")
    assert result.exit_code == 1
    assert "several files" in result.stderr


def test_compile_writes_the_plan(model_path: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    first = invoke("compile", model_path, "-o", tmp_path / "a.vmfb", "--plan-out", plan)
    assert first.exit_code == 0, first.output
    assert json.loads(plan.read_text())["kernels"]
    again = invoke("compile", model_path, "-o", tmp_path / "b.vmfb", "--plan", plan)
    assert again.exit_code == 0, again.output


def test_compile_dumps_every_level(model_path: Path, tmp_path: Path) -> None:
    result = invoke("compile", model_path, "-o", tmp_path / "a.vmfb", "--dump-dir", tmp_path / "dump")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "dump" / "2-preprocessing.mlir").exists()


# run


def test_run_makes_inputs_and_prints_outputs(model_path: Path) -> None:
    result = invoke("run", model_path, "--threads", "1")
    assert result.exit_code == 0, result.output
    assert "probabilities: float32[7x37], min" in result.stdout
    assert "scores: float32[7x37], min" in result.stdout


def test_run_takes_a_compiled_program_and_arrays(
    program: tilewright.Program, tmp_path: Path, x: Array, expected: list[Array]
) -> None:
    module = program.save(tmp_path / "a.vmfb")
    np.save(tmp_path / "x.npy", x)
    result = invoke("run", module, "--input", tmp_path / "x.npy", "-o", tmp_path / "y.npz")
    assert result.exit_code == 0, result.output
    saved = np.load(tmp_path / "y.npz")
    np.testing.assert_allclose(saved["probabilities"], expected[0], rtol=1e-5, atol=1e-6)


def test_run_takes_an_npz_by_name(program: tilewright.Program, tmp_path: Path, x: Array) -> None:
    module = program.save(tmp_path / "a.vmfb")
    np.savez(tmp_path / "in.npz", unused=np.zeros(3), x=x)
    result = invoke("run", module, "--input", tmp_path / "in.npz")
    assert result.exit_code == 0, result.output


def test_run_compares_with_its_peers(model_path: Path) -> None:
    result = invoke("run", model_path, "--compare", "--seconds", "0.1", "--threads", "1", "--json")
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)["rows"]}
    assert rows["Tilewright"]["kernels"] >= 1
    assert rows["IREE alone"]["kernels"] >= 2
    for row in rows.values():
        assert row["seconds"] > 0
        assert max(row["errors"]) < 1e-6
    low_to_high = rows["IREE alone"]["speedup"]
    assert low_to_high[1] <= low_to_high[0] <= low_to_high[2]


def test_the_comparison_leaves_out_a_peer_that_cannot_return_its_results(tmp_path: Path) -> None:
    """ONNX Runtime computes bf16, but cannot return it as a numpy array."""
    pytest.importorskip("onnxruntime")
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (8, 8))
    y = helper.make_tensor_value_info("y", TensorProto.BFLOAT16, (8, 8))
    model = helper.make_model(
        helper.make_graph([node], "cast", [x], [y]),
        opset_imports=[helper.make_opsetid("", 19)],
        ir_version=10,
    )
    path = tmp_path / "cast.onnx"
    path.write_bytes(model.SerializeToString())
    result = invoke("run", path, "--compare", "--seconds", "0.1", "--threads", "1", "--json")
    assert result.exit_code == 0, result.output
    assert [row["name"] for row in json.loads(result.stdout)["rows"]] == ["Tilewright", "IREE alone"]


def test_the_comparison_is_a_table(model_path: Path) -> None:
    result = invoke("run", model_path, "--compare", "--seconds", "0.1", "--threads", "1")
    assert result.exit_code == 0, result.output
    for text in ("Tilewright", "IREE alone", "1 thread,", "kernels", "float64"):
        assert text in result.stdout


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1"])
def test_no_time_is_refused(seconds: str) -> None:
    result = invoke("run", "none.onnx", "--compare", "--seconds", seconds)
    assert result.exit_code == 2
    assert "give a number of seconds above 0" in result.stderr


def test_a_folder_is_no_plan(model_path: Path, tmp_path: Path) -> None:
    result = invoke("compile", model_path, "--plan", tmp_path, "-o", tmp_path / "a.vmfb")
    assert result.exit_code == 1
    assert "a folder, not a file; `--plan-out` writes one" in result.stderr


# explain, targets, doctor


def test_explain_prints_text_or_json(program: tilewright.Program, tmp_path: Path) -> None:
    module = program.save(tmp_path / "a.vmfb")
    assert "left to IREE" in invoke("explain", module).stdout
    assert json.loads(invoke("explain", module, "--json").stdout)["target"] == "cpu"
    assert invoke("explain", module, "-o", tmp_path / "why.txt").exit_code == 0
    assert "left to IREE" in (tmp_path / "why.txt").read_text()


def test_the_plan_goes_through_pipes(tmp_path: Path) -> None:
    first = tilewright_process(
        "compile", "-", "-o", tmp_path / "a.vmfb", "--plan-out", "-", input=TWICE.encode()
    )
    assert json.loads(first.stdout)["target"]
    (tmp_path / "twice.mlir").write_text(TWICE)
    arguments: list[str | Path] = [
        "compile",
        tmp_path / "twice.mlir",
        "-o",
        tmp_path / "b.vmfb",
        "--plan",
        "-",
    ]
    again = tilewright_process(*arguments, input=first.stdout)
    assert again.returncode == 0, again.stderr


def test_standard_input_is_one_file() -> None:
    refused = CliRunner().invoke(cli, ["compile", "-", "--plan", "-"], input=TWICE)
    assert refused.exit_code == 2
    assert "standard input cannot be both the model and the plan" in refused.stderr


def test_arrays_go_through_pipes(
    program: tilewright.Program, tmp_path: Path, x: Array, expected: list[Array]
) -> None:
    module, given = program.save(tmp_path / "a.vmfb"), io.BytesIO()
    np.save(given, x)
    done = tilewright_process("run", module, "-i", "-", "-o", "-", input=given.getvalue())
    assert done.returncode == 0, done.stderr
    with np.load(io.BytesIO(done.stdout)) as outputs:
        np.testing.assert_allclose(outputs[outputs.files[0]], expected[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        ("compile m.onnx", "--tuning=x.db", "--tuning is now --database"),
        ("run m.onnx", "--tuning=x.db", "--tuning is now --database"),
        ("explain m.onnx", "--format=json", "--format is now --json"),
        ("simulate k.mlir", "--max-seconds=1", "--max-seconds is now --timeout"),
    ],
)
def test_an_old_spelling_is_refused_with_the_new_one(command: str, old: str, new: str) -> None:
    result = invoke(*command.split(), old)
    assert result.exit_code == 2
    assert new in result.stderr
    assert old.partition("=")[0] not in invoke(command.split()[0], "--help").stdout


_BROKEN = """
import sys
for name in ("tilewright._native", "iree", "iree.compiler", "iree.runtime"):
    sys.modules[name] = None
from tilewright.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["doctor"], ["doctor", "--json"]], ids=" ".join
)
def test_a_broken_installation_can_still_be_examined(arguments: list[str]) -> None:
    command = [sys.executable, "-c", _BROKEN, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == (1 if "doctor" in arguments else 0), result.stderr
    said = " ".join((result.stdout + result.stderr).split())
    assert "the extension module cannot be loaded" in said
    assert "internal error" not in said


@pytest.mark.parametrize("command", ["compile", "run", "explain", "tune", "simulate", "targets"])
def test_a_broken_installation_has_the_help_of_every_command(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BROKEN, command, "--help"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_what_does_not_load_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BROKEN, "targets"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the extension module cannot be loaded")
    assert done.stderr.count("\n") == 1


def test_targets_lists_and_prints() -> None:
    listing = invoke("targets")
    assert listing.exit_code == 0
    assert "x86-64-avx512" in listing.stdout
    assert json.loads(invoke("targets", "x86-64-avx2").stdout)["name"] == "x86-64-avx2"


def test_doctor_finds_this_installation_well() -> None:
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    assert "ok      compile and run" in result.stdout


# errors


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", "missing.onnx"),
        ("run", "missing.vmfb"),
        ("explain", "missing.onnx"),
        ("targets", "pdp11"),
        ("run", "{model}", "--input", "missing.npy"),
        ("run", "{model}", "--input", "{model}"),
        ("run", "{model}", "--dim", "rows=3"),
        ("run", "missing.vmfb", "--compare"),
        ("compile", "{model}", "--target", "pdp11"),
        ("compile", "{model}", "--plan", "missing.json"),
        ("compile", "{model}", "--iree-flag=--nonsense"),
        ("compile", "{model}", "-o", "/nonexistent/folder/a.vmfb"),
        ("compile", "{model}", "-o", "."),
    ],
)
def test_errors_are_one_line_and_not_zero(model_path: Path, arguments: tuple[str, ...]) -> None:
    result = invoke(*(a.format(model=model_path) for a in arguments))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize("shape", [f"({2**60},)", "(" * 9000])
def test_an_input_file_whose_header_lies_is_refused(
    program: tilewright.Program, tmp_path: Path, shape: str
) -> None:
    """numpy raises many kinds of errors for these, one of which is MemoryError."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    result = invoke("run", program.save(tmp_path / "a.vmfb"), "--input", path)
    assert result.exit_code == 1
    assert "not a .npy or .npz file, or a damaged one" in result.stderr


def test_a_compiled_program_is_not_simulated(program: tilewright.Program, tmp_path: Path) -> None:
    module = program.save(tmp_path / "a.vmfb")
    there = invoke("run", module, "--device", "sim:h200")
    assert there.stderr.endswith("no kernels to simulate; give the ONNX or MLIR file it was compiled from\n")
    missing = invoke("run", tmp_path / "b.vmfb", "--device", "sim:h200")
    assert missing.stderr == f"error: {tmp_path / 'b.vmfb'}: no such file; check the path of the model\n"


@pytest.mark.parametrize("option", [["--target", "cuda:a100"], ["--compare"], ["--seconds", "3"], ["--json"]])
def test_what_a_simulated_gpu_cannot_heed_is_refused(tmp_path: Path, option: list[str]) -> None:
    refused = invoke("run", tmp_path / "a.onnx", "--device", "sim:h200", *option)
    assert refused.exit_code == 2
    assert f"{option[0]} cannot be combined with --device" in refused.stderr


def test_outputs_do_not_replace_a_pipe(program: tilewright.Program, tmp_path: Path) -> None:
    """They do not replace a device either: /dev/full would become an ordinary file."""
    module = program.save(tmp_path / "a.vmfb")
    os.mkfifo(tmp_path / "pipe")
    result = invoke("run", module, "-o", tmp_path / "pipe")
    assert result.stderr.endswith("is a device or a pipe; give the name of a file\n")
    assert (tmp_path / "pipe").is_fifo()


def test_a_traceback_is_shown_on_request() -> None:
    result = tilewright_process("compile", "missing.onnx", "--traceback")
    assert result.returncode != 0
    assert b"Traceback" in result.stderr


def test_an_error_of_ours_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr("tilewright.cli.doctor.examine", broken)
    result = invoke("doctor")
    assert result.exit_code == 70
    assert result.stderr == "internal error: RuntimeError: first second; run with --traceback for a report\n"


def test_a_failing_pass_prints_a_line_that_reproduces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise tilewright.PassError("no", location="here", reproducer="tilewright-opt x.mlir")

    monkeypatch.setattr("tilewright.api.fuse.stitch", fail)
    result = CliRunner().invoke(cli, ["compile", "-", "-o", "-"], input=TWICE)
    assert result.exit_code == 1
    assert result.stderr == "error: here: no\nreproduce it with: tilewright-opt x.mlir\n"


def test_a_failed_compile_leaves_no_files(
    model_path: Path, tmp_path: Path, assert_no_leftovers: Callable[[Path], None]
) -> None:
    # Files are limited to 2 KiB: intermediate files and outputs fail alike, wherever the limit hits first.
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); "
        "from tilewright.cli.main import main; main()"
    )
    command = [sys.executable, "-c", code, "compile", str(model_path), "-o", str(tmp_path / "a.vmfb")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert_no_leftovers(tmp_path)


def test_a_closed_pipe_is_no_error(model_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tilewright", "targets"]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert "Traceback" not in process.stderr


def test_bad_usage_is_clicks_own_error() -> None:
    assert invoke("run", "x.onnx", "--dim", "n").exit_code == 2
    assert invoke("compile", "x.onnx", "--parameters", "model").exit_code == 2
    assert invoke("compile", "x.onnx", "--threads", "0").exit_code == 2
    assert invoke("run", "x.onnx", "--seed", "-1").exit_code == 2


def test_named_dims_are_sized(tmp_path: Path) -> None:
    text = "func.func @f(%x: tensor<?x5xf32>) -> tensor<?x5xf32> { return %x : tensor<?x5xf32> }"
    (tmp_path / "f.mlir").write_text(text)
    result = invoke("run", tmp_path / "f.mlir", "--threads", "1")
    assert result.exit_code == 0, result.output
    assert "output0: float32[1x5]" in result.stdout


def test_run_accepts_the_shape_it_asks_for(model_path: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((ROWS, HIDDEN + 1), np.float32))
    result = invoke("run", model_path, "--input", tmp_path / "x.npy", "--threads", "1")
    assert result.exit_code == 1
    assert "input 'x'" in result.stderr
