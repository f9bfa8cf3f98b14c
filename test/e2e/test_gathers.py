"""Tests of elements that are read at places that the graph computes: embeddings and other gathers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tilewright
from gather_models import (
    GATHERS,
    READINGS,
    ROWS,
    TYPES,
    Model,
    Reading,
    of_computed,
    reading_inputs,
    reading_model,
    rows,
)
from tilewright.reference.oracle import float64_reference, relative_error, tolerance

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=4)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("model", GATHERS)
def test_elements_are_gathered(model: Callable[[str], Model], dtype: str) -> None:
    graph, arrays = model(dtype)
    program = tilewright.compile(graph)
    (expected,) = float64_reference(graph, arrays)
    (actual,) = program(*arrays)
    np.testing.assert_array_equal(actual, expected.astype(actual.dtype))
    assert program.kernels, "IREE gathered them"


@pytest.mark.parametrize("reading", READINGS)
def test_what_is_gathered_is_computed_with(reading: Reading) -> None:
    model = reading_model(reading)
    program = tilewright.compile(model, threads=[2])
    arrays = reading_inputs(program)
    (expected,) = float64_reference(model, arrays)
    (actual,) = program(*arrays)
    assert relative_error(actual, expected) <= tolerance(actual.dtype)
    assert program.runtime == "direct", "an op stayed with IREE"


def test_nothing_outside_of_the_table_is_read() -> None:
    """ONNX leaves such places open. They are brought into the table, so no program reads another's memory."""
    graph, (table, places) = rows("f32")
    places[3], places[7] = 1 << 40, -(1 << 40)
    (actual,) = tilewright.compile(graph)(table, places)
    inside = np.clip(np.where(places < 0, places + ROWS, places), 0, ROWS - 1)
    np.testing.assert_array_equal(actual, table[inside])


def test_a_table_is_complete_before_a_kernel_gathers_from_it() -> None:
    """A plan that computes a table in the kernel that gathers from it is refused."""
    model = reading_model(of_computed)
    plan = tilewright.compile(model, threads=1).plan
    assert plan is not None
    edited = plan.to_json()
    first, second = edited["kernels"]
    first["groups"] += second["groups"]
    edited.update(kernels=[first], streams=[[0]])
    with pytest.raises(tilewright.PlanError, match="reads another's result at places that it computes"):
        tilewright.compile(model, threads=1, plan=tilewright.Plan.from_json(edited))
