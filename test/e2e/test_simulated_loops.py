"""Loops in kernels for GPUs, on the simulated device: one kernel runs all steps, keeps its weights, and its blocks wait
between two steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.errors import SimulationError
from tilewright.reference.drawing import random_inputs
from tilewright.reference.oracle import float64_reference
from tilewright.simulator import programs
from tilewright.simulator.programs import SimulatedRun, describe_launches, simulate_program

from benchmarks.workloads import RecurrentOptions, ScanOptions, recurrent, selective_scan

pytestmark = pytest.mark.lands(one_in=2)

STEPS, HIDDEN = 3, 256


def _lstm(*, layers: int = 1, hidden: int = HIDDEN) -> onnx.ModelProto:
    return recurrent(RecurrentOptions(layers=layers, steps=STEPS, hidden=hidden))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "lstm of many blocks": _lstm,
    "lstm of one block": lambda: _lstm(hidden=16),
    "two equal layers": lambda: _lstm(layers=2, hidden=64),
    "gru": lambda: recurrent(RecurrentOptions(op="GRU", layers=1, steps=5, hidden=48, batch=2)),
    "selective scan": lambda: selective_scan(ScanOptions(steps=7, channels=16, state=4)),
}


def compiled(model: onnx.ModelProto, folder: Path) -> tilewright.Program:
    return tilewright.compile(model, target="cuda:h200", dump_dir=folder, strict=True)


def simulated(
    model: onnx.ModelProto, folder: Path, change: Callable[[str], str] | None = None
) -> tuple[tilewright.Program, SimulatedRun]:
    """Runs a model on the simulated device; `change` plants a fault into the text of its kernels."""
    program = compiled(model, folder)
    with pytest.MonkeyPatch.context() as patch:
        if change is not None:

            def planted(dump: Path) -> dict[str, Any]:
                flow = describe_launches(dump)
                kernels = change(flow["kernels"])
                assert kernels != flow["kernels"]
                return {**flow, "kernels": kernels}

            patch.setattr(programs, "describe_launches", planted)
        return program, simulate_program(program, folder, random_inputs(model, 3))


@pytest.mark.parametrize("name", MODELS)
def test_one_kernel_runs_all_steps(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    program, run = simulated(model, tmp_path)
    for loop in program.metadata.report.loops:
        assert loop.kernel, loop.reason
    assert run.outputs is not None
    assert len(run.kernels) == len(program.kernels)
    expected = float64_reference(model, random_inputs(model, 3))
    for ours, exact in zip(run.outputs, expected, strict=True):
        # sums of up to 256 terms in f32, whose roundings a few steps hand on
        np.testing.assert_allclose(
            ours.astype(np.float64), exact, rtol=0, atol=2e-5 * max(1.0, np.abs(exact).max())
        )


def test_weights_are_read_once_for_all_steps(tmp_path: Path) -> None:
    _, run = simulated(_lstm(), tmp_path)
    weights = 4 * HIDDEN * HIDDEN * 4
    (steps,) = (kernel for kernel in run.kernels if kernel.kernel.endswith("_steps"))
    asked = 32 * max(binding.sectors_read for binding in steps.bindings)
    assert weights <= asked <= 1.05 * weights


def test_blocks_wait_between_two_steps(tmp_path: Path) -> None:
    _, run = simulated(_lstm(), tmp_path)
    (steps,) = (kernel for kernel in run.kernels if kernel.kernel.endswith("_steps"))
    assert steps.grid_barriers % STEPS == STEPS - 1  # none after the last step


def _without_last_barrier(text: str) -> str:
    """Removes the barrier between two steps, which is the last one of the kernel that runs all steps."""
    begin = text.index("_steps(")
    call = list(re.finditer(r"llvm\.call @tile_grid_barrier\([^\n]*\n", text[begin:]))[-1]
    return text[: begin + call.start()] + text[begin + call.end() :]


def _never_copied(text: str) -> str:
    """Has weights copied in all steps but the first one."""
    begin = text.index("_steps(")
    question = list(re.finditer(r'llvm\.icmp "eq" %\w+, %\w+ : i64', text[begin:]))[-1]
    at = begin + question.start()
    return text[:at] + text[at:].replace('"eq"', '"ne"', 1)


@pytest.mark.parametrize("fault", [_without_last_barrier, _never_copied])
def test_planted_faults_are_found(fault: Callable[[str], str], tmp_path: Path) -> None:
    with pytest.raises(SimulationError):
        simulated(_lstm(), tmp_path, fault)


def test_without_grid_barriers_every_step_is_a_launch(tmp_path: Path) -> None:
    model = _lstm(hidden=32)
    program = tilewright.compile(model, target="cuda:h200", dump_dir=tmp_path, grid_sync=False)
    (loop,) = program.metadata.report.loops
    assert not loop.kernel and "grid barriers" in loop.reason
    run = simulate_program(program, tmp_path, random_inputs(model, 3))
    assert len(run.kernels) > STEPS
    (ours,) = run.results
    (exact,) = float64_reference(model, random_inputs(model, 3))
    np.testing.assert_allclose(ours.astype(np.float64), exact, rtol=0, atol=2e-5)
