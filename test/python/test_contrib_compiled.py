"""ONNX Runtime's own ops give what ONNX Runtime computes once they are compiled, in kernels of ours."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from contrib_cases import CASES, compare

pytestmark = pytest.mark.lands(one_in=10)

_TOLERANCE = 128 * 2.0**-24
"""Roundings of f32, in other orders of sums and in exponentials and error functions of our own."""


@pytest.mark.parametrize("name", CASES)
def test_the_compiled_program_computes_the_same(name: str) -> None:
    case = CASES[name]
    expected = case.expected()
    program = tilewright.compile(case.typed_model(expected), "x86-64-avx2", threads=1)
    with np.errstate(all="ignore"):
        actual = program(*case.inputs.values())
    compare(case, actual, expected, tolerance=_TOLERANCE)
    assert program.kernels
