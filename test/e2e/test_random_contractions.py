"""Tests of contractions in linalg against float64: layouts, types, initial values and epilogues that no ONNX model
combines."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from random_contractions import in_float64, module_of, random_contraction

pytestmark = pytest.mark.cpu_levels

_AT_ONCE = 6  # contractions in a module


@pytest.mark.parametrize("seed", range(4))
def test_random_contractions(seed: int) -> None:
    rng = np.random.default_rng([seed, 17])
    contractions = [random_contraction(rng) for _ in range(_AT_ONCE)]
    inputs = [each.inputs(rng) for each in contractions]
    program = tilewright.compile(module_of(contractions), threads=1, tuning=False)
    assert not [
        left for left in program.metadata.report.left_to_iree if left.reason.startswith("a contraction")
    ]
    results = program(*(value for each in inputs for value in each))
    for what, given, got in zip(contractions, inputs, results, strict=True):
        exact, error = in_float64(what, given)
        if what.sum_type == "i32":
            np.testing.assert_array_equal(got, exact, err_msg=repr(what))
        else:
            assert (np.abs(got.astype(np.float64) - exact) <= error).all(), what


_ONES = """
func.func @main(%a: tensor<3x4099xf16>, %b: tensor<4099x33xf16>, %c: tensor<3x33xf16>) -> tensor<3x33xf16> {
  %y = linalg.matmul ins(%a, %b : tensor<3x4099xf16>, tensor<4099x33xf16>) outs(%c : tensor<3x33xf16>)
      -> tensor<3x33xf16>
  return %y : tensor<3x33xf16>
}
"""


def test_sums_in_f16_lose_no_terms() -> None:
    """In f16 a sum of ones stays at 2048. The initial value is added before the only rounding: f16 represents 4100."""
    program = tilewright.compile(_ONES, threads=1, tuning=False)
    ones = [np.ones(shape, np.float16) for shape in ((3, 4099), (4099, 33), (3, 33))]
    assert (program(*ones)[0] == 4100).all()
    assert "rounding after a sum in f32" in program.explain()


def test_strict_sums_in_f16_are_left_alone() -> None:
    program = tilewright.compile(_ONES, threads=1, tuning=False, numerics="strict")
    assert not program.kernels
    assert [left.op for left in program.metadata.report.left_to_iree] == ["linalg.matmul"]
