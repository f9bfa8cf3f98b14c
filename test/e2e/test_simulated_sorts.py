"""Tests of sorted rows (TopK) on the simulated device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tilewright
from onnx import TensorProto
from sort_models import SORTED_TYPES, first_of_sorted, repeated_values, top_model
from tilewright.simulator.programs import simulate_program

pytestmark = pytest.mark.lands(one_in=2)


@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64])
@pytest.mark.parametrize(("shape", "kept"), [((5, 29), 29), ((3, 64), 2), ((1, 700), 5)])
def test_threads_count_the_elements_in_front(
    shape: tuple[int, int], kept: int, element: int, tmp_path: Path
) -> None:
    x = repeated_values(shape, SORTED_TYPES[element])
    model = top_model(shape, kept, axis=-1, largest=True, element=element)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    ran = simulate_program(program, tmp_path, [x])
    values, indices = first_of_sorted(x, kept, -1, largest=True)
    assert ran.outputs is not None, "IREE sorts"
    np.testing.assert_array_equal(ran.outputs[0], values)
    np.testing.assert_array_equal(ran.outputs[1], indices)
