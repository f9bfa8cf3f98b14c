"""A compilation ends at its time limit, and the error names the step that was running."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from click.testing import CliRunner
from onnx import TensorProto, helper
from tilewright.cli.main import cli
from tilewright.system.deadline import Deadline
from tilewright.worker import process
from tilewright.worker.process import Worker, WorkerTooSlow

_LIMIT_SECONDS = 8.0
"""Seconds that suffice to reach the step that hangs, even on a busy machine; every test here takes this long."""

_MODULE = b"""
#map = affine_map<(i, j) -> (i, j)>
module @model {
  func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
    %empty = tensor.empty() : tensor<3x5xf32>
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<3x5xf32>) outs(%empty : tensor<3x5xf32>) {
    ^bb0(%a: f32, %b: f32):
      %c = math.exp %a : f32
      linalg.yield %c : f32
    } -> tensor<3x5xf32> loc("layer_3")
    return %y : tensor<3x5xf32>
  }
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 5]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "exp", values[:1], values[1:])
    path = tmp_path / "exp.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


@pytest.fixture
def _hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes workers hang in a phase of IREE's back end."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    monkeypatch.setenv("HANG_IN", "IREE's phase 'stream'")
    monkeypatch.setattr(process, "Worker", partial(Worker, module="slow_worker"))


@pytest.mark.usefixtures("_hangs")
def test_the_phase_that_takes_too_long_is_named(model: Path) -> None:
    with pytest.raises(tilewright.CompileError, match=r"longer than 8 s .* IREE's phase 'stream'"):
        tilewright.compile(model, timeout=_LIMIT_SECONDS)


@pytest.mark.usefixtures("_hangs")
def test_the_command_line_has_a_limit(model: Path) -> None:
    result = CliRunner().invoke(cli, ["explain", str(model), "--timeout", str(_LIMIT_SECONDS)])
    assert result.exit_code == 1
    assert "IREE's phase 'stream'" in result.output


def test_the_pass_that_takes_too_long_is_named_with_the_op_it_is_at(tmp_path: Path) -> None:
    # Opening a pipe without a reader blocks forever: the pass has planned and would write its report.
    os.mkfifo(tmp_path / "pipe")
    passes = f"builtin.module(canonicalize,tile-form-subprograms{{report={tmp_path / 'pipe'}}})"
    header: dict[str, Any] = {
        "request": "tilewright.tuning.service:answer",
        "pipeline": passes,
        "from_iree": False,
    }
    with (
        Worker(tmp_path, deadline=Deadline(_LIMIT_SECONDS)) as worker,
        pytest.raises(
            tilewright.CompileTimeoutError,
            match=r"pass 'tile-form-subprograms' on builtin.module 'model', at linalg.generic \(layer_3\)",
        ),
    ):
        worker.ask(header, _MODULE)


def test_a_request_after_the_time_is_over_is_not_begun(tmp_path: Path) -> None:
    with Worker(tmp_path, deadline=Deadline(1e-9)) as worker:
        with pytest.raises(tilewright.CompileTimeoutError, match="the import of ONNX"):
            worker.ask(
                {"request": "tilewright.frontends.service:answer_import", "step": "the import of ONNX"}
            )
        assert worker._process is None


def test_a_limit_of_requests_stays_one_beside_a_later_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    with (
        Worker(tmp_path, module="fuzz_victim", limit_seconds=2.0, deadline=Deadline(1e300)) as worker,
        pytest.raises(WorkerTooSlow, match="longer than 2 s"),
    ):
        worker.ask({"request": "fuzz_victim:hang"})


def test_a_compilation_within_its_limit_is_what_it_was(model: Path) -> None:
    x = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
    (limited,), (free,) = (tilewright.compile(model, timeout=t)(x) for t in (1e6, None))
    np.testing.assert_array_equal(limited, free)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), "3", True])
def test_what_is_no_time_is_refused(model: Path, timeout: Any) -> None:
    with pytest.raises(tilewright.CompileError, match="is not a valid time limit"):
        tilewright.compile(model, timeout=timeout)
    with pytest.raises(tilewright.CompileError, match="is not a valid time limit"):
        tilewright.tune(model, timeout=timeout)


@pytest.mark.parametrize("command", ["compile", "run", "explain", "tune"])
def test_the_command_line_refuses_what_is_no_time(model: Path, command: str) -> None:
    result = CliRunner().invoke(cli, [command, str(model), "--timeout", "0"])
    assert result.exit_code == 2
    assert "is not a valid time limit" in result.output
