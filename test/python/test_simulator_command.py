"""`tilewright simulate`: results, counts, faults and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from simulator_cases import INPUTS
from tilewright.cli.main import cli


def test_command(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.float32))
    module = str(INPUTS / "correct.mlir")
    line = ["simulate", module, "--kernel=scale", "--grid=1", f"--binding={tmp_path}/x.npy"]
    line += ["--binding=64:f32:empty", "--constant=64"]
    result = CliRunner().invoke(cli, [*line, f"--save=1:{tmp_path}/y.npy", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["globalReads"]["sectors"] == 8
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), 2 * np.arange(64))
    assert "past the L2: 256 bytes read, 256 written" in CliRunner().invoke(cli, line).output


def test_command_fails_on_a_bug() -> None:
    module = str(INPUTS / "bugs.mlir")
    line = ["simulate", module, "--kernel=misaligned", "--binding=8:f32:1", "--binding=8:f32:empty"]
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 1
    assert "misaligned: llvm.load at planted" in result.output


def test_command_refuses_wrong_bindings() -> None:
    module = str(INPUTS / "correct.mlir")
    for wrong in ("8:f31:0", "no.npy", "f32"):
        result = CliRunner().invoke(cli, ["simulate", module, f"--binding={wrong}"])
        assert result.exit_code == 1
        assert result.output.startswith("error: ")
        assert result.output.count("\n") == 1
