"""Tests of elements that are read at places that the graph computes, on the simulated device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tilewright
from gather_models import GATHERS, READINGS, TYPES, Model, Reading, reading_inputs, reading_model
from tilewright.reference.oracle import float64_reference, relative_error, tolerance
from tilewright.simulator.programs import simulate_program

pytestmark = pytest.mark.lands(one_in=4)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("model", GATHERS)
def test_threads_gather_elements(model: Callable[[str], Model], dtype: str, tmp_path: Path) -> None:
    graph, arrays = model(dtype)
    program = tilewright.compile(graph, "cuda:h200", dump_dir=tmp_path)
    ran = simulate_program(program, tmp_path, arrays)
    (expected,) = float64_reference(graph, arrays)
    assert ran.outputs is not None
    np.testing.assert_array_equal(ran.outputs[0], expected.astype(np.asarray(ran.outputs[0]).dtype))


@pytest.mark.parametrize("reading", READINGS)
def test_what_threads_gather_is_computed_with(reading: Reading, tmp_path: Path) -> None:
    model = reading_model(reading)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    arrays = reading_inputs(program)
    ran = simulate_program(program, tmp_path, arrays)
    (expected,) = float64_reference(model, arrays)
    assert ran.outputs is not None
    assert relative_error(ran.outputs[0], expected) <= tolerance(np.dtype(np.float32))
