"""Loops of recurrent models in our kernels: the numbers are right, no part is IREE's, and steps copy nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.reference.drawing import random_inputs
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads import (
    DienOptions,
    RecogniserOptions,
    RecurrentOptions,
    ScanOptions,
    dien,
    recogniser,
    recurrent,
    selective_scan,
    unrolled_lstm,
)

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=3)]

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    # steps of 16 and 40 elements are whole 64 bytes apart, and those of 7 are not
    "lstm": lambda: recurrent(RecurrentOptions(layers=2, steps=5, hidden=16)),
    "lstm, odd sizes": lambda: recurrent(RecurrentOptions(layers=1, steps=4, hidden=7, batch=3)),
    "lstm, both directions": lambda: recurrent(
        RecurrentOptions(layers=2, steps=5, hidden=16, batch=2, is_bidirectional=True)
    ),
    "gru": lambda: recurrent(RecurrentOptions(op="GRU", layers=2, steps=6, hidden=40, batch=2)),
    "two steps": lambda: recurrent(RecurrentOptions(layers=1, steps=2, hidden=16)),
    "unrolled lstm": lambda: unrolled_lstm(RecurrentOptions(layers=2, steps=6, hidden=64, batch=2)),
    "selective scan": lambda: selective_scan(ScanOptions(steps=9, channels=16, state=4)),
    "dien": lambda: dien(DienOptions(steps=5, batch=8, is_loop=True)),
    "speech": lambda: recogniser(RecogniserOptions(bands=16, frames=20, layers=2, hidden=32)),
}


def check(model: onnx.ModelProto, *, threads: int = 1) -> tilewright.Program:
    program = tilewright.compile(model, threads=threads)
    inputs = random_inputs(model, 5)
    expected = float64_reference(model, inputs)
    for ours, exact in zip(program(*inputs), expected, strict=True):
        # sums of up to 40 terms in f32, whose roundings some ten steps hand on
        np.testing.assert_allclose(
            ours.astype(np.float64), exact, rtol=0, atol=2e-5 * max(1.0, np.abs(exact).max())
        )
    return program


@pytest.mark.parametrize("name", MODELS)
def test_a_loop_runs_without_iree(name: str) -> None:
    program = check(MODELS[name]())
    assert program.runtime == "direct"
    assert program.metadata.report.loops


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_threads_meet_in_every_step(name: str) -> None:
    check(MODELS[name](), threads=2)


@pytest.mark.parametrize("name", MODELS)
def test_iree_runs_the_same_kernels_in_its_own_loop(name: str) -> None:
    model = MODELS[name]()
    program = tilewright.compile(model, threads=1)
    inputs = random_inputs(model, 5)
    theirs = program.session()(inputs, program.signature)
    for ours, other in zip(program(*inputs), theirs, strict=True):
        np.testing.assert_array_equal(ours, other)


def test_calls_do_not_see_states_of_earlier_calls() -> None:
    model = MODELS["lstm"]()
    program = tilewright.compile(model, threads=1)
    first, second = random_inputs(model, 1), random_inputs(model, 2)
    alone = [result.copy() for result in program(*first)]
    program(*second)
    for again, result in zip(program(*first), alone, strict=True):
        np.testing.assert_array_equal(again, result)


def test_explain_lists_loops() -> None:
    program = tilewright.compile(MODELS["lstm"](), threads=1)
    (first, second) = program.metadata.report.loops
    assert first.steps == 5 and first.kernels and second.kernels
    assert str(first) in program.explain()
    assert {kernel.name for kernel in program.kernels} >= {*first.kernels, *second.kernels}


def test_lengths_beyond_a_loop_stay_right() -> None:
    """Sequences with lengths compare the number of the step in every step."""
    model = recurrent(
        RecurrentOptions(layers=1, steps=5, hidden=16, batch=3, is_bidirectional=True, has_lengths=True)
    )
    program = tilewright.compile(model, threads=1)
    (x, _) = random_inputs(model, 3)
    for lengths in ([5, 5, 5], [1, 5, 3], [0, 2, 5]):
        inputs = [x, np.array(lengths, np.int32)]
        (ours,) = program(*inputs)
        (exact,) = float64_reference(model, inputs)
        np.testing.assert_allclose(ours.astype(np.float64), exact, rtol=0, atol=2e-5)
