"""Mixtures of experts on the simulated device: gates, experts and towers are one kernel, also the towers' last layers,
which have one column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from planted_loops import simulated
from tilewright.reference.drawing import random_inputs
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads import MmoeOptions, mmoe
from benchmarks.workloads.narrow import to_narrow

pytestmark = pytest.mark.lands(one_in=2)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 1e-6), ("f16", 1e-3)])
def test_a_mixture_of_experts_is_one_kernel(dtype: str, tolerance: float, tmp_path: Path) -> None:
    model = mmoe(MmoeOptions())
    if dtype != "f32":
        model = to_narrow(model, dtype)
    program, run = simulated(model, tmp_path)
    assert program.metadata.launches is not None  # calls run without IREE
    assert len(run.kernels) == 1
    assert run.outputs is not None
    for ours, exact in zip(run.outputs, float64_reference(model, random_inputs(model, 3)), strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), exact, rtol=0, atol=tolerance)
