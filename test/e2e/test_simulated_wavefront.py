"""Stacks of recurrent layers for GPUs, on the simulated device: all layers run at once, each a step behind the one
before, and the weights of all of them stay in the shared memory of the blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from planted_loops import compiled, never_copied, simulated, without_last_barrier
from tilewright.errors import SimulationError
from tilewright.reference.drawing import random_inputs
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads import RecurrentOptions, recurrent
from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.workload import to_narrow

pytestmark = pytest.mark.lands(one_in=2)

LAYERS, STEPS, HIDDEN = 3, 4, 48
WAVES = STEPS + LAYERS - 1


def _stack(op: str = "LSTM", *, batch: int = 1, layers: int = LAYERS) -> onnx.ModelProto:
    return recurrent(RecurrentOptions(op=op, layers=layers, steps=STEPS, hidden=HIDDEN, batch=batch))


def _with_all_results(*, width: int = 20) -> onnx.ModelProto:
    """LSTM layers whose first one reads other widths than the others; all sequences and last states are results."""
    g = GraphBuilder("lstm_results", seed=0)
    x = g.input("sequence", (STEPS, 2, width))
    for _ in range(LAYERS):
        weights = g.weight((1, 4 * HIDDEN, width), fan_in=width)
        recurrent_weights = g.weight((1, 4 * HIDDEN, HIDDEN), fan_in=HIDDEN)
        states = [
            g.constant(0.5 * g.rng.standard_normal((1, 2, HIDDEN), dtype=np.float32), "state") for _ in "hc"
        ]
        bias = g.constant(0.1 * g.rng.standard_normal((1, 8 * HIDDEN), dtype=np.float32), "bias")
        y, *last = g.ops(
            "LSTM", x, weights, recurrent_weights, bias, "", *states, results=3, hidden_size=HIDDEN
        )
        x, width = g.op("Squeeze", y, g.ints([1])), HIDDEN
        g.output(y, (STEPS, 1, 2, HIDDEN))
        for state in last:
            g.output(state, (1, 2, HIDDEN))
    return g.build()


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "lstm": _stack,
    "two layers": lambda: _stack(layers=2),
    "gru of two sequences": lambda: _stack("GRU", batch=2),
    "results of each layer": _with_all_results,
}


@pytest.mark.parametrize("name", MODELS)
def test_layers_run_at_once(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    program, run = simulated(model, tmp_path)
    (loop,) = program.metadata.report.loops
    assert loop.kernel, loop.reason
    assert loop.steps == (WAVES if name != "two layers" else STEPS + 1)
    assert run.outputs is not None
    for ours, exact in zip(run.outputs, float64_reference(model, random_inputs(model, 3)), strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), exact, rtol=0, atol=2e-6)


def test_weights_of_16_bits_stay_narrow(tmp_path: Path) -> None:
    model = to_narrow(_stack(), "f16")
    _, run = simulated(model, tmp_path)
    (steps,) = (kernel for kernel in run.kernels if kernel.kernel.endswith("_steps"))
    weights = LAYERS * HIDDEN * 8 * HIDDEN * 2
    assert weights in [32 * binding.sectors_read for binding in steps.bindings]
    assert run.outputs is not None
    for ours, exact in zip(run.outputs, float64_reference(model, random_inputs(model, 3)), strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), exact, rtol=0, atol=2e-3)  # f16 has 11 bits


def test_weights_of_all_layers_are_read_once(tmp_path: Path) -> None:
    _, run = simulated(_stack(), tmp_path)
    (steps,) = (kernel for kernel in run.kernels if kernel.kernel.endswith("_steps"))
    weights = LAYERS * HIDDEN * 8 * HIDDEN * 4  # of the state for its own layer and the next one
    asked = 32 * max(binding.sectors_read for binding in steps.bindings)
    assert weights <= asked <= 1.05 * weights


@pytest.mark.parametrize("fault", [without_last_barrier, never_copied])
def test_planted_faults_are_found(fault: Callable[[str], str], tmp_path: Path) -> None:
    with pytest.raises(SimulationError):
        simulated(_stack(), tmp_path, fault)


def _ends_early(text: str) -> str:
    """Ends the loop one step early, in which only the last layer is at work."""
    begin = text.index("_steps(")
    limit = f"({WAVES} : i64)"
    at = text.rindex(limit)
    assert at > begin
    return text[:at] + f"({WAVES - 1} : i64)" + text[at + len(limit) :]


def test_an_early_end_changes_the_last_step_only(tmp_path: Path) -> None:
    model = _stack()
    (exact,) = float64_reference(model, random_inputs(model, 3))
    try:
        _, run = simulated(model, tmp_path, _ends_early)
    except SimulationError:
        return  # the last step was never written
    assert run.outputs is not None
    (ours,) = run.outputs
    np.testing.assert_allclose(ours[:-1].astype(np.float64), exact[:-1], rtol=0, atol=2e-6)
    assert np.abs(ours[-1] - exact[-1]).max() > 1e-3


def test_other_layers_run_one_after_another(tmp_path: Path) -> None:
    both = RecurrentOptions(layers=2, steps=STEPS, hidden=16, is_bidirectional=True)
    assert len(compiled(recurrent(both), tmp_path).metadata.report.loops) == 4


def test_without_grid_barriers_layers_run_one_after_another(tmp_path: Path) -> None:
    program = compiled(_stack(), tmp_path, grid_sync=False)
    assert [loop.steps for loop in program.metadata.report.loops] == [STEPS] * LAYERS
