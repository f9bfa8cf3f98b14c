"""Parts of a GPU check: wheels, sketches of results, and the errors of the driver."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fake_cuda import FakeCuda
from tilewright.errors import ProgramError
from tilewright.runtime.cuda import Cuda, CudaError

from benchmarks.gpu_check import start
from benchmarks.gpu_check.sketch import norm, relative_error, sketch


def test_a_wheel_is_for_its_python() -> None:
    here, older = f"cp3{sys.version_info[1]}", f"cp3{sys.version_info[1] - 1}"
    assert start._runs_here("py3", "none")
    assert start._runs_here(here, here)
    assert start._runs_here(older, "abi3")
    assert not start._runs_here(older, older)
    assert not start._runs_here("cp399", "abi3")


@pytest.mark.parametrize("scale", [0.0, 1e-5, 1e-2])
@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16])
def test_a_sketch_tells_how_far_a_result_is(scale: float, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    expected = rng.standard_normal((77, 321)).astype(dtype).astype(np.float64)
    noise = rng.standard_normal(expected.shape) * scale
    found = relative_error(expected + noise, sketch(expected), norm(expected))
    assert found == pytest.approx(norm(noise) / norm(expected), rel=0.15)


def test_a_sketch_tells_one_wrong_row_and_what_is_no_number() -> None:
    expected = np.random.default_rng(1).standard_normal((512, 768))
    swapped = expected.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    true = norm(swapped - expected) / norm(expected)
    assert relative_error(swapped, sketch(expected), norm(expected)) == pytest.approx(true, rel=0.2)
    swapped[0, 0] = np.nan
    assert relative_error(swapped, sketch(expected), norm(expected)) == np.inf


def test_ptx_of_a_newer_gpu_is_refused_with_the_drivers_words() -> None:
    cuda = Cuda(FakeCuda(capability=(8, 0)))
    with pytest.raises(CudaError, match=r"CUDA_ERROR_INVALID_IMAGE: unsupported \.target"):
        cuda.load(b".version 8.0\n.target sm_90\n")


def test_no_driver_is_a_clear_error() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    with pytest.raises(ProgramError, match=r"no NVIDIA driver is installed"):
        Cuda()
