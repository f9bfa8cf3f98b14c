"""Loops in kernels for GPUs, on the simulated device: one kernel runs all steps, keeps its weights, and its blocks wait
between two steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from planted_loops import never_copied, simulated, without_last_barrier
from tilewright.errors import SimulationError
from tilewright.reference.drawing import random_inputs
from tilewright.reference.oracle import float64_reference
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads import RecurrentOptions, ScanOptions, recurrent, selective_scan, unrolled_lstm

pytestmark = pytest.mark.lands(one_in=2)

STEPS, HIDDEN = 3, 256


def _lstm(*, layers: int = 1, hidden: int = HIDDEN) -> onnx.ModelProto:
    return recurrent(RecurrentOptions(layers=layers, steps=STEPS, hidden=hidden))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "lstm of many blocks": _lstm,
    "lstm of one block": lambda: _lstm(hidden=16),
    "two equal layers": lambda: _lstm(layers=2, hidden=64),
    "gru": lambda: recurrent(RecurrentOptions(op="GRU", layers=1, steps=5, hidden=48, batch=2)),
    "unrolled cells": lambda: unrolled_lstm(RecurrentOptions(layers=2, steps=4, hidden=64)),
    "selective scan": lambda: selective_scan(ScanOptions(steps=7, channels=16, state=4)),
}


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


def test_inputs_of_all_steps_are_one_product(tmp_path: Path) -> None:
    _, run = simulated(_lstm(hidden=64), tmp_path)
    (inputs,) = (kernel for kernel in run.kernels if not kernel.kernel.endswith("_steps"))
    weights = 4 * 64 * 64 * 4
    # A batch of products would read weights of its own for each step.
    assert 32 * max(binding.sectors_read for binding in inputs.bindings) < STEPS * weights


def test_blocks_wait_between_two_steps(tmp_path: Path) -> None:
    _, run = simulated(_lstm(), tmp_path)
    (steps,) = (kernel for kernel in run.kernels if kernel.kernel.endswith("_steps"))
    assert steps.grid_barriers % STEPS == STEPS - 1  # none after the last step


@pytest.mark.parametrize("fault", [without_last_barrier, never_copied])
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
