"""Tests of rows that are streamed past the caches while the next ones are read: every row, including the first and the
last of each workgroup, has the numbers of float64.

A quotient of a sum of 784 exponentials is off by a few roundings, and so is a normalised row, whose elements are
around one: 1e-5 covers all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, random_inputs

from benchmarks.workloads import stitch

pytestmark = pytest.mark.cpu_levels

# The input exceeds the outermost cache; 6007 is prime, so the ranges of workgroups differ in length and parity.
_SHAPE = (6007, 784)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("pattern", [stitch.softmax, stitch.layer_norm_op], ids=["softmax", "layer-norm"])
def test_every_row_is_right(pattern: Callable[..., Any], threads: int, tmp_path: Path) -> None:
    model = pattern(_SHAPE)
    program = tilewright.compile(model, threads=[threads], tuning=False, dump_dir=tmp_path)
    # The stores run beside the first nest of the next tile, and once more behind the last tile.
    assert len(re.findall(r"\tv?movntps\b", (tmp_path / "kernels.s").read_text())) > 1
    inputs = random_inputs(model, 0)
    outputs = program(*inputs)
    result = outputs if isinstance(outputs, np.ndarray) else outputs[0]
    expected = float64_reference(model, inputs)[0]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
