"""`tilewright check --device sim:GPU`: kernels for a GPU are held to float64 on the simulated device."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from check_cases import chain
from click.testing import CliRunner
from conftest import make_model, value
from onnx import helper
from tilewright import CompileOptions
from tilewright.cli import main
from tilewright.compare import reproducer
from tilewright.compare.check import check
from tilewright.errors import TargetError, VerificationError
from tilewright.simulator.programs import simulate_program

RIGHT = CompileOptions(threads=1, cache=None, tuning=None)


@pytest.fixture(scope="module")
def found() -> Any:
    """A check on a device that computes every Exp wrongly; a Softmax has none by that name."""

    def faulty(program: Any, dump: Path, arrays: Any) -> Any:
        simulated = simulate_program(program, dump, arrays)
        wrong = any("grow" in op.location for kernel in program.kernels for op in kernel.ops)
        assert simulated.outputs is not None
        return replace(simulated, outputs=[y + 1 for y in simulated.outputs]) if wrong else simulated

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tilewright.compare.check.simulate_program", faulty)
        return check(chain(), options=RIGHT, device="sim:h200", runs=1)


def test_a_right_model_is_right() -> None:
    checked = check(chain(), options=RIGHT, device="sim:h200", runs=2)
    assert checked.is_right
    assert checked.kernels >= 1


def test_a_fault_is_traced_to_its_op_without_asking_iree(found: Any) -> None:
    assert not found.is_right
    assert found.culprit.found.node == "grow"
    assert found.culprit.is_wrong_in_iree is None


def test_the_reproducer_runs_on_the_simulated_device(found: Any, tmp_path: Path) -> None:
    folder = reproducer.write_reproducer(
        found, tmp_path / "wrong", options=RIGHT, target="cpu", device="sim:h200"
    )
    right = subprocess.run([sys.executable, folder / "run.py"], capture_output=True, text=True)
    assert right.returncode == 0, right.stderr
    assert "IS_SIMULATED = True" in (folder / "run.py").read_text()


def test_a_model_without_a_kernel_of_ours_gives_no_results() -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    with pytest.raises(VerificationError, match="no kernel is ours"):
        check(make_model([node], [value("x", [3])], [value("y", [3])]), options=RIGHT, device="sim:h200")


def test_passes_of_the_caller_are_refused() -> None:
    options = CompileOptions(threads=1, cache=None, passes={"planned": [lambda op: None]})
    with pytest.raises(VerificationError, match="do not run on the simulated device"):
        check(chain(), options=options, device="sim:h200")


def test_a_device_that_is_not_simulated_is_refused() -> None:
    with pytest.raises(TargetError, match="sim:GPU"):
        check(chain(), options=RIGHT, device="h200")


def test_the_command_takes_a_device_or_a_target(tmp_path: Path) -> None:
    onnx.save(chain(), tmp_path / "chain.onnx")
    arguments = ["check", str(tmp_path / "chain.onnx"), "--device", "sim:a100", "--runs", "1"]
    result = CliRunner().invoke(main.cli, arguments)
    assert result.exit_code == 0, result.output
    assert CliRunner().invoke(main.cli, [*arguments, "--target", "cpu"]).exit_code == 2
