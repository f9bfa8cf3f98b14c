"""Batches of matrices by the same weights on the simulated device: the weights are not repeated for each."""

from __future__ import annotations

from pathlib import Path

import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.narrow import to_narrow

pytestmark = pytest.mark.lands(one_in=2)


@pytest.mark.parametrize("target", ["cuda:h200", "cuda:a100"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("batch", "rows", "inner", "columns"), [(3, 33, 48, 40), (2, 64, 64, 128)])
def test_weights_are_read_in_place(
    batch: int, rows: int, inner: int, columns: int, dtype: str, target: str, tmp_path: Path
) -> None:
    g = GraphBuilder("layers")
    x = g.input("x", (batch, rows, inner))
    hidden = g.op("Tanh", g.op("MatMul", x, g.weight((inner, columns), fan_in=inner)))
    g.output(g.op("MatMul", hidden, g.weight((columns, inner), fan_in=columns)), (batch, rows, inner))
    model = g.build() if dtype == "f32" else to_narrow(g.build(), dtype)
    program = tilewright.compile(model, target, tuning=False, dump_dir=tmp_path)
    assert not program.plan.to_json()["left"]
    inputs = random_inputs(model, 1)
    (result,) = simulate_program(program, tmp_path, inputs).results
    (expected,) = float64_reference(model, inputs)
    assert relative_error(result, expected) <= model_tolerance(model)
