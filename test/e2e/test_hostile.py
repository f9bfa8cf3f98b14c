"""Tests that broken inputs end in success or in one clean error, without crash, hang, unlimited memory, or
traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fuzz import hostile
from fuzz.hostile import Case, feed

_TESTS = Path(__file__).resolve().parents[1]
_ONNX_SEEDS = range(0, 240, 2)
_MLIR_SEEDS = range(1, 601, 2)
# Every fourth of the seeds lands.
_LANDING_STEP = 4


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest) -> Sequence[Case]:
    step = 1 if request.config.getoption("--all") else _LANDING_STEP
    seeds = [*_ONNX_SEEDS[::step], *_MLIR_SEEDS[::step]]
    return feed(seeds, jobs=len(os.sched_getaffinity(0)), corpus=_TESTS, progress=lambda case: None)


def test_every_broken_input_ends_cleanly(cases: Sequence[Case]) -> None:
    assert [
        f"{case.seed} {case.mutation}: {case.outcome} {case.message}" for case in cases if case.is_finding
    ] == []


@pytest.mark.parametrize("suffix", [".onnx", ".mlir"])
def test_inputs_are_broken_and_not_all_hopeless(suffix: str, cases: Sequence[Case]) -> None:
    """Most inputs are refused, but some are accepted; otherwise the mutations would only test parsers."""
    outcomes = [case.outcome for case in cases if case.suffix == suffix]
    assert outcomes.count("refused") > len(outcomes) // 2
    assert outcomes.count("accepted") > len(outcomes) // 50


def test_a_process_that_computes_for_longer_than_its_limit_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "LIMIT_SECONDS", 1)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning:
        hostile.bound_time([Path(f"/proc/{spinning.pid}")])
    assert spinning.returncode == -signal.SIGXCPU
