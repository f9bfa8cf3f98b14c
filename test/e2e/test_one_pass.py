"""Statistics over more than a workgroup can keep: one kernel, one pass, and still close to float64."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import tilewright

from benchmarks.workloads.builder import GraphBuilder

_SHAPE = (5, 47, 43, 70)  # 2.8 MB; channels are not a multiple of a vector


def _model() -> onnx.ModelProto:
    g = GraphBuilder("batch_statistics")
    x = g.input("x", _SHAPE)
    axes, kept = [0, 1, 2], [1, 1, 1, _SHAPE[-1]]
    mean = g.op("ReduceMean", x, axes=axes, keepdims=1)
    difference = g.op("Sub", x, mean)
    variance = g.op("ReduceMean", g.op("Mul", difference, difference), axes=axes, keepdims=1)
    g.output(mean, kept)
    g.output(variance, kept)
    return g.build()


@pytest.fixture(scope="module")
def program() -> tilewright.Program:
    return tilewright.compile(_model(), threads=1)


def test_it_is_one_kernel_that_reads_once(program: tilewright.Program) -> None:
    (kernel,) = program.kernels
    assert not program.metadata.report.left_to_iree
    assert kernel.predicted_bytes <= 1.05 * 4 * np.prod(_SHAPE)


# The error grows with the square of the shift from the mean over the deviation; the shift is an element, so by the
# square of how far elements stray: 5 deviations here, and f32 rounds to 6e-8.
@pytest.mark.parametrize(("mean", "deviation"), [(0, 1), (1000, 1), (-3, 1e-3), (0, 1e-15)])
def test_mean_and_variance_are_right(program: tilewright.Program, mean: float, deviation: float) -> None:
    x = (np.random.default_rng(0).standard_normal(_SHAPE) * deviation + mean).astype(np.float32)
    x64 = x.astype(np.float64)
    mean32, variance32 = program(x)
    np.testing.assert_allclose(mean32, x64.mean((0, 1, 2), keepdims=True), rtol=1e-5, atol=1e-5 * deviation)
    # The mean itself is a rounded number: its error, squared, is in the variance of the two-pass form as well.
    floor = (1e-6 * mean) ** 2
    np.testing.assert_allclose(variance32, x64.var((0, 1, 2), keepdims=True), rtol=1e-4, atol=floor)


def test_constant_channels_have_no_variance(program: tilewright.Program) -> None:
    x = np.broadcast_to(np.linspace(-9, 9, _SHAPE[-1], dtype=np.float32), _SHAPE)
    _, variance = program(x)
    assert np.all(variance >= 0)
    assert np.max(variance) < 1e-8  # the square of the mean's own rounding error, as in the two-pass form


def test_nan_stays(program: tilewright.Program) -> None:
    x = np.ones(_SHAPE, np.float32)
    x[2, 3, 4, 5] = np.nan
    for y in program(x):
        np.testing.assert_array_equal(np.isnan(y.ravel()), np.arange(_SHAPE[-1]) == 5)


def test_the_other_algebra_is_declared_and_strictly_not_used(program: tilewright.Program) -> None:
    assert "two-moment variance instead of the model's algebra" in program.explain()
    assert "two-moment" not in tilewright.compile(_model(), threads=1, numerics="strict").explain()
