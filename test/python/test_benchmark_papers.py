"""The tables of the papers have our predictions beside the papers' own figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tilewright.api.policies import PolicyPlan

from benchmarks import policies
from benchmarks.client import ROOT
from benchmarks.papers import Evidence, Planned, tables
from benchmarks.policies import Row, to_markdown


def _plan(policy: str, seconds: float, kernels: int, *, moving: int = 1, size: float = 1e6) -> PolicyPlan:
    return PolicyPlan(
        policy=policy,
        planning_seconds=0.1,
        seconds=seconds,
        bytes=size,
        kernels=kernels,
        memory_intensive_kernels=moving,
        memory_intensive_bytes=size,
        patterns=2,
        largest_kernel=7,
        launches=kernels,
    )


def _plans() -> list[PolicyPlan]:
    return [
        _plan("unfused", 8e-3, 40, moving=20, size=4e6),
        _plan("xla", 4e-3, 20, moving=10, size=2e6),
        _plan("fusionstitching", 2e-3, 13, moving=3),
        _plan("welder", 2e-3, 5),
        _plan("powerfusion", 2e-3, 10, moving=2),
        _plan("souffle", 1e-3, 4),
        _plan("unified", 1e-3, 4),
    ]


def _cells(text: str, title: str, row: str) -> list[str]:
    """Returns the cells of a row of the table below a title."""
    lines = text.split(title)[1].splitlines()
    line = next(line for line in lines if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_our_figures_stand_beside_the_papers() -> None:
    plans = {plan.policy: plan for plan in _plans()}
    steps = {name: _plan(name, seconds, 8) for name, seconds in (("souffle-v1", 4e-3), ("souffle-v2", 2e-3))}
    bert = Planned(plans=plans, steps=steps)
    text = tables(Evidence(target="cuda:a100", models={"bert": bert}, sweep={128: plans}))
    stitched = _cells(text, "FusionStitching, figure 7", "bert")
    assert stitched[1:] == ["2.00", "4.00", "20, 10, 3", "365, 277, 77", "30%", "25%"]
    assert _cells(text, "Welder, figure 13", "kernels")[1:] == ["-50%", "-67%", "-75%", "-60%"]
    assert _cells(text, "Welder, figure 14", "128")[1:] == ["2.00", "20, 5"]
    whole = _cells(text, "Souffle, table 3", "bert")
    assert whole[1:3] == ["4.000, 1.000, 1.000", "4.00"] and whole[4] == "2.09"
    ablation = _cells(text, "Souffle, table 4", "bert")
    assert ablation[1:3] == ["8.000, 4.000, 2.000, -, 1.000", "1.00, 2.00, 4.00, -, 8.00"]
    assert ablation[3] == "3.1, 2.12, 1.53, 1.41, 1.22"
    assert _cells(text, "Souffle, table 5", "bert")[3:] == ["216, 24", "226.8"]
    assert _cells(text, "PowerFusion", "bert")[1:5] == ["10 + 10", "8 + 2", "-50%", "2.00"]


# Tables of results are printed again from their file.
def test_results_are_printed_from_their_file(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "benchmarks" / "results" / "2026-11-28-policies-f32-predicted-h200.json"
    assert policies.main(["--from", str(path)]) == 0
    text = capsys.readouterr().out
    assert "| bert-small |" in text and "### Souffle, table 5" in text


# A model without a plan of some policy has no row, and a table without rows is left out.
def test_what_is_not_known_is_left_out() -> None:
    text = tables(Evidence(target="cuda:a100", models={"bert": Planned(plans={})}))
    assert "FusionStitching" not in text and "Souffle" not in text


def test_summary_counts_where_the_search_finds_more_than_policies() -> None:
    better = Row(
        target="cpu",
        workload="better",
        dtype="f32",
        plans=(_plan("greedy", 2e-3, 3), _plan("unified", 1e-3, 3)),
    )
    equal = Row(
        target="cpu",
        workload="equal",
        dtype="f32",
        plans=(_plan("greedy", 1e-3, 3), _plan("unified", 1e-3, 3)),
    )
    text = to_markdown([better, equal])
    assert "strictly below its best seed for 1 of 2 workloads; equal to it for equal" in text


# One command prints the tables of all targets, with traffic of the simulated device for a GPU, and its file has them.
def test_targets_have_tables_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policies.json"
    asked = [
        "--workloads",
        "softmax-77x77x5",
        "--suite",
        "stitch",
        "--target",
        "cpu,cuda:h200",
        "--plan-seconds",
        "0",
    ]
    assert policies.main([*asked, "--simulate", "--run", "unfused", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "## cpu" in printed and "## cuda:h200" in printed
    cpu, gpu = json.loads(file.read_text())["rows"]
    assert cpu["simulated"] == {} and gpu["simulated"]["unfused"] >= 2 * 77 * 77 * 5 * 4
    assert policies.main(["--from", str(file)]) == 0
    assert capsys.readouterr().out == printed
