"""The fuzzer's verdicts: results are compared with float64, failures are told apart, and deaths are verdicts, too."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.errors import SimulationError
from tilewright.records.report import Report
from tilewright.worker.process import Worker, WorkerDied, WorkerTooSlow

from fuzz.builder import ModelBuilder
from fuzz.graphs import random_graph
from fuzz.hunt import Judge, Outcome, _to_judge_again
from fuzz.judge import DifferentBitsError, Verdict, compare, goes_through_iree, judge
from fuzz.judge import Expected as Expectation


def test_a_reference_that_contradicts_itself_is_the_judges_failure() -> None:
    m = ModelBuilder("twins")
    x = m.input((3,), "f32")
    for op in ("Neg", "Abs"):
        m.output(m.op(op, x), (3,), "f32")
    verdict = judge({"a": m.build()}, {"a": 1}, target="cpu", kind="twins")["a"]
    assert (verdict.kind, "contradicts itself" in verdict.message) == ("oracle", True)


def _report(*, taken: int, left: int) -> Report:
    op = {"op": "linalg.generic", "loc": 'loc("a/v0")', "bytes": 4}
    kernel: dict[str, Any] = {"name": "k", "edges": [], "groups": [], "predicted": []}
    kernel["ops"] = [{**op, "id": index, "root": True} for index in range(taken)]
    rest = {**op, "reason": "", "operations": 1, "dispatch": True}
    return Report.from_json({"kernels": [kernel], "left_to_iree": [rest] * left})


def test_a_verdict_holds_errors_and_coverage() -> None:
    model = random_graph(0)
    expected = {"a": Expectation.of(model, 0)}
    right = expected["a"].outputs
    good = compare(expected, right, _report(taken=9, left=1))["a"]
    assert (good.failed, good.counts, good.taken, good.eligible) == (False, True, 9, 10)
    assert not compare(expected, right, _report(taken=8, left=1))["a"].counts
    assert compare(expected, [y * 1.5 for y in right], _report(taken=9, left=1))["a"].kind == "wrong numbers"
    assert (
        compare(expected, [y * np.nan for y in right], _report(taken=9, left=1))["a"].kind == "wrong numbers"
    )


@pytest.mark.parametrize("part", ["a", ""])
def test_a_part_that_iree_computes_is_not_compared(part: str) -> None:
    model = random_graph(0)
    expected = {"a": Expectation.of(model, 0)}
    invented = [np.zeros_like(y) for y in expected["a"].outputs]
    verdict = compare(expected, invented, _report(taken=9, left=1), incomplete=frozenset({part}))["a"]
    assert (verdict.failed, verdict.has_share, verdict.counts) == (False, True, False)


def test_graphs_are_judged_on_a_simulated_device(monkeypatch: pytest.MonkeyPatch) -> None:
    models, seeds = {"g3": random_graph(3), "g5": random_graph(5)}, {"g3": 3, "g5": 5}
    for verdict in judge(models, seeds, target="sim:h200").values():
        assert (verdict.kind, verdict.message, verdict.counts) == ("passed", "", True)

    def find(*arguments: Any) -> None:
        raise SimulationError("kernel k: race: llvm.load at g3/v1")

    monkeypatch.setattr("fuzz.judge.simulate_program", find)
    assert {v.message for v in judge(models, seeds, target="sim:h200").values()} == {
        "kernel k: race: llvm.load at g3/v1"
    }


def test_where_all_digits_cancel_rounding_is_no_error() -> None:
    """mean(x - mean(x)) is zero, so that only rounding is left; a larger result is an error."""
    m = ModelBuilder("cancels")
    x = m.input((9,), "bf16")
    difference = m.op("Sub", x, m.op("ReduceMean", x, m.ints([0]), keepdims=1))
    m.output(m.op("ReduceMean", difference, m.ints([0]), keepdims=1), (1,), "bf16")
    expected = {"a": Expectation.of(m.build(), 3)}
    assert not compare(expected, [np.full(1, 1e-3)], _report(taken=1, left=0))["a"].failed
    assert compare(expected, [np.full(1, 0.5)], _report(taken=1, left=0))["a"].failed


def test_failures_are_alike_whatever_their_numbers() -> None:
    error = Verdict(kind="error", message="at v3: 'tensor<3x4xf32>' is illegal")
    assert error.same_failure(Verdict(kind="error", message="at v7: 'tensor<9xf16>' is illegal"))
    assert not error.same_failure(Verdict(kind="error", message="something else"))
    assert not error.same_failure(Verdict(kind="crash", message=error.message))


def test_a_request_beyond_its_limit_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with Worker(tmp_path, module="fuzz_victim", limit_seconds=2.0) as worker:
        with pytest.raises(WorkerTooSlow, match="longer than 2 s"):
            worker.ask({"request": "fuzz_victim:hang"})
        with pytest.raises(WorkerDied, match="SIGSEGV"):
            worker.ask({"request": "fuzz_victim:crash"})
        assert worker.ask({"request": "fuzz_victim:live"})[0] == {"ok": True}


def test_deaths_of_a_judge_are_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge(tmp_path, target="cpu")

    def die(self: Worker, header: dict[str, Any], blob: bytes = b"") -> None:
        raise WorkerDied(f"died by {signal.Signals.SIGSEGV.name}", "")

    monkeypatch.setattr(Worker, "ask", die)
    outcome = judge.seeds([1, 2])
    assert [finding.seeds for finding in outcome.findings] == [(1,), (2,)]
    assert {verdict.kind for verdict in outcome.verdicts.values()} == {"crash"}


def test_what_fails_only_in_company_is_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge(tmp_path, target="cpu")

    def ask(self: Worker, header: dict[str, Any], blob: bytes = b"") -> tuple[dict[str, Any], bytes, str]:
        kind = "wrong numbers" if len(header["seeds"]) > 1 else "passed"
        verdict = Verdict(kind=kind, taken=1, eligible=1).to_json()
        seeds = header["seeds"]
        return (
            {"verdicts": dict.fromkeys(seeds, verdict), "operators": {s: {"Add f32": 1} for s in seeds}},
            b"",
            "",
        )

    monkeypatch.setattr(Worker, "ask", ask)
    outcome = judge.seeds([1, 2, 3])
    assert [finding.seeds for finding in outcome.findings] == [(1, 2, 3)]
    assert outcome.operators == {"Add f32": 3}


def test_a_refused_graph_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is refused is halved until the graph that causes it is alone."""
    asked: list[list[int]] = []

    def ask(self: Worker, header: dict[str, Any], blob: bytes = b"") -> tuple[dict[str, Any], bytes, str]:
        seeds = header["seeds"]
        asked.append(seeds)
        verdict = Verdict(kind="refused" if 3 in seeds else "passed", message="no").to_json()
        return {"verdicts": dict.fromkeys(seeds, verdict), "operators": {s: {} for s in seeds}}, b"", ""

    monkeypatch.setattr(Worker, "ask", ask)
    outcome = Judge(tmp_path, target="cpu").seeds([0, 1, 2, 3])
    assert outcome.findings == []
    assert {seed: verdict.kind for seed, verdict in outcome.verdicts.items()} == {
        0: "passed",
        1: "passed",
        2: "passed",
        3: "refused",
    }
    assert asked == [[0, 1, 2, 3], [0, 1], [2, 3], [2], [3]]


def test_a_graph_that_an_error_names_is_judged_apart() -> None:
    refused = Verdict(kind="refused", message='loc("g18/v2"): IREE: failed to legalize')
    together = Outcome(dict.fromkeys(range(16, 20), refused))
    assert _to_judge_again(range(16, 20), together) == [[18], [16, 17, 19]]
    nameless = Outcome(dict.fromkeys(range(16, 20), Verdict(kind="refused", message="IREE died")))
    assert [list(part) for part in _to_judge_again(range(16, 20), nameless)] == [[16, 17], [18, 19]]


def test_one_module_in_eight_also_runs_in_iree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other bits in IREE are an error there, and unseen elsewhere."""
    assert [goes_through_iree(seed) for seed in (0, 15, 16, 127, 128)] == [True, True, False, False, True]
    monkeypatch.setattr("fuzz.judge.has_same_bits", lambda *_: False)
    kinds = [judge({"g": random_graph(3)}, {"g": seed}, target="cpu")["g"] for seed in (3, 19)]
    assert [(v.kind, DifferentBitsError.__name__ in v.message) for v in kinds] == [
        ("error", True),
        ("passed", False),
    ]
