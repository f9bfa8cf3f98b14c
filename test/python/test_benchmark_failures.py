"""A peer that fails, dies or hangs is a row of the benchmark, and the others go on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from benchmark_cases import QUICK, SETTINGS, measured

from benchmarks import arrays
from benchmarks.client import Client, PeerError
from benchmarks.measure import Plan
from benchmarks.rows import make_rows

pytestmark = pytest.mark.usefixtures("fake_peers")


# A peer that refuses, dies or computes wrongly costs its own row alone.
@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize(
    ("peer", "status", "reason"),
    [
        ("fake_peers:Crashing", "crashed", "SIGSEGV"),
        ("fake_peers:Refusing", "unsupported", "knows no such operator"),
        ("fake_peers:Wrong", "wrong", "relative error"),
        ("fake_peers:NotANumber", "wrong", "output 0 has NaN"),
        ("fake_peers:Misshapen", "wrong", "output 0 has the shape (6, 13), not (7, 13)"),
        ("fake_peers:Silent", "wrong", "0 outputs, not 1"),
        ("no_such_package:Peer", "not installed", "no_such_package"),
    ],
)
def test_failure_is_in_the_row_and_others_go_on(peer: str, status: str, reason: str, tmp_path: Path) -> None:
    [result] = measured({"failing": peer, "honest": "fake_peers:Honest"}, tmp_path)
    failing, honest = make_rows([result])
    assert (failing.status, failing.median_s) == (status, None)
    assert reason in failing.reason
    assert honest.status == "ok"
    assert honest.turns >= QUICK.rounds * QUICK.least_turns
    assert honest.median_s is not None


@pytest.mark.parametrize("call", [1, 2, 4, 6])
def test_crash_in_any_call_is_in_the_row(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbered calls prepare, check, choose the number of calls per burst, and decide if kernels are timed
    apart."""
    monkeypatch.setenv("CRASH_AT", str(call))
    plan = replace(QUICK, rounds=1)
    peers = {"crashing": "fake_peers:CrashingLater", "honest": "fake_peers:Honest"}
    [result] = measured(peers, tmp_path, plan=plan)
    crashing, honest = make_rows([result])
    assert (crashing.status, honest.status) == ("crashed", "ok")
    assert "SIGKILL" in crashing.reason


# One hanging peer does not hold up the others.
def test_hanging_peer_is_ended_at_its_limit(tmp_path: Path) -> None:
    plan = Plan(rounds=1, seconds=0.02, least_turns=1, prepare_limit=3.0)
    [result] = measured({"hanging": "fake_peers:Hanging", "honest": "fake_peers:Honest"}, tmp_path, plan=plan)
    hanging, honest = make_rows([result])
    assert (hanging.status, honest.status) == ("timed out", "ok")
    assert "within 3 s" in hanging.reason


@pytest.fixture
def _all_calls_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes all calls count as short, even on a busy machine."""
    monkeypatch.setattr("benchmarks.measure.SHORT_SECONDS", math.inf)


# A peer that cannot repeat a model is compared by whole calls, and the row says why.
@pytest.mark.usefixtures("_all_calls_are_short")
def test_peer_without_repetitions_is_timed_by_calls(tmp_path: Path) -> None:
    [result] = measured({"single": "fake_peers:NotRepeating", "honest": "fake_peers:Honest"}, tmp_path)
    single, honest = make_rows([result])
    assert (single.status, single.kernel_s, single.reason) == ("ok", None, "too long")
    assert single.median_s is not None
    assert honest.kernel_s is not None


# A peer that drops repetitions would look fast; its outputs show it.
@pytest.mark.usefixtures("_all_calls_are_short")
def test_outputs_of_repetitions_are_checked(tmp_path: Path) -> None:
    [result] = measured({"dropping": "fake_peers:Dropping", "honest": "fake_peers:Honest"}, tmp_path)
    dropping, honest = make_rows([result])
    assert (dropping.status, honest.status) == ("wrong", "ok")
    assert dropping.reason.startswith("4 repetitions: relative error")


# A peer that merges repetitions has no time per repetition.
@pytest.mark.usefixtures("_all_calls_are_short")
def test_fewer_kernels_than_repetitions_have_no_slope(tmp_path: Path) -> None:
    [result] = measured({"merging": "fake_peers:Merging", "honest": "fake_peers:Honest"}, tmp_path)
    merging, honest = make_rows([result])
    assert (merging.status, merging.kernel_s, merging.reason) == ("ok", None, "fuses repetitions")
    assert honest.kernel_s is not None


# The next question goes to a new process.
def test_client_starts_again_after_a_crash(tmp_path: Path) -> None:
    with Client("fake_peers:Crashing", SETTINGS, log=tmp_path / "log") as client:
        for _ in range(2):
            arrays.save(tmp_path, [])
            with pytest.raises(PeerError, match="SIGSEGV"):
                client.ask("prepare", limit=10.0, model="", inputs=str(tmp_path), repetitions=1, cache="")
