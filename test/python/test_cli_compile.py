"""`tilewright compile`: files, pipes and plans."""

from __future__ import annotations

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
from cli_cases import invoke, tilewright_process
from click.testing import CliRunner
from tilewright.cli.main import cli

TWICE = """
func.func @twice(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = arith.addf %x, %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}"""


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


def test_a_folder_is_no_plan(model_path: Path, tmp_path: Path) -> None:
    result = invoke("compile", model_path, "--plan", tmp_path, "-o", tmp_path / "a.vmfb")
    assert result.exit_code == 1
    assert "a folder, not a file; `--plan-out` writes one" in result.stderr


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
    # Files are limited to 2 KiB: intermediate files and outputs fail alike, wherever the limit hits first. Python would
    # leave the first 2 KiB of compiled modules for all later processes.
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); "
        "from tilewright.cli.main import main; main()"
    )
    command = [sys.executable, "-c", code, "compile", str(model_path), "-o", str(tmp_path / "a.vmfb")]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 1, result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert_no_leftovers(tmp_path)
