"""Stacks of recurrent layers for GPUs, on the simulated device: all layers run at once, each a step behind the one
before, and the weights of all of them stay in the shared memory of the blocks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from planted_loops import compiled, never_copied, simulated, without_last_barrier
from tilewright.errors import SimulationError
from tilewright.reference.drawing import random_inputs
from tilewright.reference.oracle import float64_reference
from tilewright.simulator.programs import SimulatedRun, describe_launches

from benchmarks.workloads import RecurrentOptions, recurrent
from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.narrow import to_narrow

pytestmark = pytest.mark.lands(one_in=2)

LAYERS, STEPS, HIDDEN = 3, 4, 48
WAVES = STEPS + LAYERS  # of which the last one only collects


def _stack(op: str = "LSTM", *, batch: int = 1, layers: int = LAYERS) -> onnx.ModelProto:
    return recurrent(RecurrentOptions(op=op, layers=layers, steps=STEPS, hidden=HIDDEN, batch=batch))


def _with_last_states() -> onnx.ModelProto:
    """LSTM layers, the last states of each of which are results."""
    g = GraphBuilder("lstm_states", seed=0)
    x = g.input("sequence", (STEPS, 1, HIDDEN))
    for _ in range(LAYERS):
        shapes = ((1, 4 * HIDDEN, HIDDEN), (1, 4 * HIDDEN, HIDDEN))
        weights = [g.weight(shape, fan_in=HIDDEN) for shape in shapes]
        y, *last = g.ops("LSTM", x, *weights, results=3, hidden_size=HIDDEN)
        x = g.op("Squeeze", y, g.ints([1]))
        for state in last:
            g.output(state, (1, 1, HIDDEN))
    g.output(x, (STEPS, 1, HIDDEN))
    return g.build()


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


JOINT: dict[str, Callable[[], onnx.ModelProto]] = {
    "lstm": _stack,
    "two layers": lambda: _stack(layers=2),
    "two sequences": lambda: _stack(batch=2),
    "last states": _with_last_states,
}
"""Stacks whose layers have one product each, for what they read and their state."""

APART: dict[str, Callable[[], onnx.ModelProto]] = {
    "gru of two sequences": lambda: _stack("GRU", batch=2),
    "results of each layer": _with_all_results,
}
"""Stacks in which the first layer's input is multiplied in front of the loop."""


def _check(run: SimulatedRun, model: onnx.ModelProto, tolerance: float) -> None:
    assert run.outputs is not None
    for ours, exact in zip(run.outputs, float64_reference(model, random_inputs(model, 3)), strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), exact, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", APART)
def test_layers_run_at_once(name: str, tmp_path: Path) -> None:
    model = APART[name]()
    program, run = simulated(model, tmp_path)
    (loop,) = program.metadata.report.loops
    assert loop.kernel, loop.reason
    assert loop.steps == STEPS + LAYERS - 1
    _check(run, model, 2e-6)


@pytest.mark.parametrize("name", JOINT)
def test_a_stack_is_one_kernel(name: str, tmp_path: Path) -> None:
    model = JOINT[name]()
    program, run = simulated(model, tmp_path)
    (loop,) = program.metadata.report.loops
    assert loop.steps == (STEPS + 2 if name == "two layers" else WAVES)
    assert [kernel.kernel for kernel in run.kernels] == [f"{loop.kernel}_steps"]
    _check(run, model, 2e-6)


@pytest.mark.parametrize("declined", ["joint products", "the form"])
def test_a_plan_declines_joint_products_or_the_form(declined: str, tmp_path: Path) -> None:
    model = _stack()
    wanted = compiled(model, tmp_path / "own").plan
    assert wanted is not None
    wanted = wanted.forms_only()
    (form,) = (form for form in wanted.forms if form.form == "wavefront")
    assert form.parameters == {"joint": [1]}
    if declined == "joint products":
        form.parameters = {"joint": [0]}
    else:
        form.taken = False
    program, run = simulated(model, tmp_path / "edited", plan=wanted)
    steps = [loop.steps for loop in program.metadata.report.loops]
    assert steps == ([STEPS + LAYERS - 1] if declined == "joint products" else [STEPS] * LAYERS)
    _check(run, model, 2e-6)


def test_strict_numerics_keep_the_order_of_sums(tmp_path: Path) -> None:
    model = _stack()
    program, run = simulated(model, tmp_path, numerics="strict")
    assert [loop.steps for loop in program.metadata.report.loops] == [STEPS + LAYERS - 1]
    _check(run, model, 2e-6)


def test_weights_of_16_bits_stay_narrow(tmp_path: Path) -> None:
    model = to_narrow(_stack(), "f16")
    _, run = simulated(model, tmp_path)
    (steps,) = run.kernels  # which also rounds the results
    weights = LAYERS * HIDDEN * 8 * HIDDEN * 2
    assert weights in [32 * binding.sectors_read for binding in steps.bindings]
    assert run.outputs is not None
    for ours, exact in zip(run.outputs, float64_reference(model, random_inputs(model, 3)), strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), exact, rtol=0, atol=2e-3)  # f16 has 11 bits


def test_weights_of_all_layers_are_read_once(tmp_path: Path) -> None:
    _, run = simulated(_stack(), tmp_path)
    (steps,) = run.kernels
    weights = LAYERS * HIDDEN * 8 * HIDDEN * 4  # of each layer for what it reads and for its state
    assert max(32 * binding.sectors_read for binding in steps.bindings) == weights


def test_weights_that_leave_no_room_for_copies_of_states_stay(tmp_path: Path) -> None:
    model = recurrent(RecurrentOptions(layers=10, steps=2, hidden=256))
    program = compiled(model, tmp_path)
    kernels = describe_launches(tmp_path)["kernels"]
    assert len(program.kernels) == 1
    # 64 KB of each block, three of which share an SM; steps of the state take the rest
    (shared,) = re.findall(r"tile.block_bytes = (\d+)", kernels)
    assert int(shared) > 65536


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
