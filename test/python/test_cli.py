"""The command line as a whole: help, conventions, exit codes, one-line errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tilewright
from cli_cases import invoke, tilewright_process


def test_help_names_every_command() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for command in ("compile", "run", "explain", "doctor", "targets"):
        assert command in result.output


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    code = "import sys, tilewright.cli.main; print([m for m in ('onnx', 'iree', 'numpy', 'rich') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_explain_prints_text_or_json(program: tilewright.Program, tmp_path: Path) -> None:
    module = program.save(tmp_path / "a.vmfb")
    assert "left to IREE" in invoke("explain", module).stdout
    assert json.loads(invoke("explain", module, "--json").stdout)["target"] == "cpu"
    assert invoke("explain", module, "-o", tmp_path / "why.txt").exit_code == 0
    assert "left to IREE" in (tmp_path / "why.txt").read_text()


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


def test_targets_lists_and_prints() -> None:
    listing = invoke("targets")
    assert listing.exit_code == 0
    assert "x86-64-avx512" in listing.stdout
    assert json.loads(invoke("targets", "x86-64-avx2").stdout)["name"] == "x86-64-avx2"


def test_doctor_finds_this_installation_well() -> None:
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    assert "ok      compile and run" in result.stdout


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
