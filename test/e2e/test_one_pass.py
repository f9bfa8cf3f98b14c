"""Tests of statistics over more than a workgroup can hold: they read x once, and are close to float64 on every
input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.reference.oracle import random_inputs
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.narrow import to_narrow

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]

_SHAPE = (5, 47, 43, 70)  # 2.8 MB; channels are not a multiple of a vector
_AXES = (0, 1, 2)

Array = np.ndarray[Any, Any]


def _model(shape: tuple[int, ...] = _SHAPE, axes: tuple[int, ...] = _AXES) -> onnx.ModelProto:
    g = GraphBuilder("batch_statistics")
    x = g.input("x", shape)
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    mean = g.op("ReduceMean", x, axes=list(axes), keepdims=1)
    difference = g.op("Sub", x, mean)
    variance = g.op("ReduceMean", g.op("Mul", difference, difference), axes=list(axes), keepdims=1)
    g.output(mean, kept)
    g.output(variance, kept)
    return g.build()


@pytest.fixture(scope="module", params=[1, 2])
def program(request: pytest.FixtureRequest, cpu_target: str) -> tilewright.Program:
    return tilewright.compile(_model(), threads=request.param)


def _check(statistics: Sequence[Array], x: Array, axes: tuple[int, ...] = _AXES) -> None:
    """Compares with float64. The mean itself is rounded: the square of its error is in the variance of the two-pass
    form as well. Roundings of a sum in f32 add up like a random walk, over as many elements as the oldest processors
    have for each of four lanes."""
    mean, variance = statistics
    roundings = 2**-24 * float(np.sqrt(x.size / mean.size / 4)) * 2
    x64 = x.astype(np.float64)
    size = float(np.max(np.abs(x64)))
    np.testing.assert_allclose(mean, x64.mean(axes, keepdims=True), rtol=1e-5, atol=1e-6 * size)
    floor = (1e-6 * float(np.max(np.abs(x64.mean(axes))))) ** 2
    np.testing.assert_allclose(variance, x64.var(axes, keepdims=True), rtol=max(1e-5, roundings), atol=floor)


def test_x_is_read_once_for_both(program: tilewright.Program) -> None:
    assert not any(op.is_dispatch for op in program.metadata.report.left_to_iree)
    assert sum(kernel.predicted_bytes for kernel in program.kernels) <= 1.1 * 4 * np.prod(_SHAPE)


@pytest.mark.parametrize(("mean", "deviation"), [(0, 1), (1000, 1), (1e4, 1), (-3, 1e-3), (0, 1e-15)])
def test_mean_and_variance_are_right(program: tilewright.Program, mean: float, deviation: float) -> None:
    x = (np.random.default_rng(0).standard_normal(_SHAPE) * deviation + mean).astype(np.float32)
    _check(program(x), x)


# If everything is summed relative to one number, the square of its distance from the mean is lost.
_FAR: dict[str, Any] = {
    "the first element": np.s_[0, 0, 0],
    "the first row": np.s_[0, 0],
    "the first rows": np.s_[:, :3],
    "the first image": np.s_[0],
    "the last image": np.s_[-1],
    "one column": np.s_[:, :, 7],
}


@pytest.mark.parametrize("distance", [10, 1000, 1e6])
@pytest.mark.parametrize("where", _FAR)
def test_elements_far_from_the_mean_do_no_harm(
    program: tilewright.Program, where: str, distance: float
) -> None:
    x = np.random.default_rng(1).standard_normal(_SHAPE).astype(np.float32)
    x[_FAR[where]] += distance
    _check(program(x), x)


def test_padding_of_zeros_does_no_harm(program: tilewright.Program) -> None:
    x = (np.random.default_rng(2).standard_normal(_SHAPE) + 1000).astype(np.float32)
    x[:, 0] = 0
    _check(program(x), x)


def test_parts_that_differ_much_are_joined(program: tilewright.Program) -> None:
    x = np.random.default_rng(3).standard_normal(_SHAPE)
    x *= 10.0 ** np.arange(-20, 27).reshape(1, -1, 1, 1) / 1e10
    _check(program(x.astype(np.float32)), x.astype(np.float32))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities_are_as_in_two_passes(program: tilewright.Program, value: float) -> None:
    x = np.ones(_SHAPE, np.float32)
    x[2, 3, 4, 5] = value
    mean, variance = program(x)
    assert mean.ravel()[5] == value
    np.testing.assert_array_equal(np.isnan(variance.ravel()), np.arange(_SHAPE[-1]) == 5)


# The cases are: channels that are not innermost; few elements, which a workgroup holds; and a row, of which no dim is
# whole.
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((7, 5, 301, 303), (0, 2, 3)), ((3, 1, 5, 70), _AXES), ((3, 300_007), (1,))],
    ids=["channels-second", "few-elements", "long-rows"],
)
def test_other_shapes(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = (np.random.default_rng(4).standard_normal(shape) + 3).astype(np.float32)
    x[tuple(0 if axis in axes else slice(None) for axis in range(len(shape)))] = 1000
    _check(tilewright.compile(_model(shape, axes), threads=1)(x), x, axes)


@pytest.mark.cpu_levels("cpu")
def test_gpu(tmp_path: Path) -> None:
    program = tilewright.compile(_model(), target="cuda:h200", dump_dir=tmp_path)
    assert "two-moment variance" in program.explain()
    x = np.random.default_rng(5).standard_normal(_SHAPE).astype(np.float32)
    x[0, 0, 0] = 1000
    x[:, 1] = 0
    outputs = simulate_program(program, tmp_path, [x]).outputs
    assert outputs is not None
    _check(outputs, x)


@pytest.mark.cpu_levels("cpu")
def test_gpu_in_bf16(tmp_path: Path) -> None:
    """It reads x once as well, in one kernel without spills. A sum and its quotient are rounded, by at most 2^-9
    each."""
    model = to_narrow(_model((16, 32, 32, 64)), "bf16")
    program = tilewright.compile(model, target="cuda:h200", dump_dir=tmp_path)
    assert "two-moment variance" in program.explain()
    assert all(taken.spill_bytes == 0 for taken in (program.metadata.resources or {}).values())
    (x,) = random_inputs(model, 0)
    x = (10 * x.astype(np.float32)).astype(x.dtype)
    x[0] = 100
    run = simulate_program(program, tmp_path, [x])
    assert run.outputs is not None
    (kernel,) = run.kernels
    assert kernel.global_reads.bytes <= 1.05 * x.nbytes
    mean, variance = (y.astype(np.float64) for y in run.outputs)
    x64 = x.astype(np.float64)
    np.testing.assert_allclose(mean, x64.mean(_AXES, keepdims=True), rtol=2**-8)
    np.testing.assert_allclose(variance, np.square(x64 - mean).mean(_AXES, keepdims=True), rtol=2**-8)


def test_constant_channels_have_no_variance(program: tilewright.Program) -> None:
    x = np.broadcast_to(np.linspace(-9, 9, _SHAPE[-1], dtype=np.float32), _SHAPE)
    _, variance = program(x)
    assert np.all(variance >= 0)
    assert (
        np.max(variance) < 1e-8
    )  # this is the square of the mean's own rounding error, as in the two-pass form


def test_nan_stays(program: tilewright.Program) -> None:
    x = np.ones(_SHAPE, np.float32)
    x[2, 3, 4, 5] = np.nan
    for y in program(x):
        np.testing.assert_array_equal(np.isnan(y.ravel()), np.arange(_SHAPE[-1]) == 5)


def test_the_other_algebra_is_declared_and_strictly_not_used(program: tilewright.Program) -> None:
    assert "two-moment variance instead of the model's algebra" in program.explain()
    assert "two-moment" not in tilewright.compile(_model(), threads=1, numerics="strict").explain()
