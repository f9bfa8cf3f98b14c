"""`explain --policy all`: what every policy makes of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import onnx
import pytest
import tilewright
from click.testing import CliRunner
from tilewright.api.policies import PolicyPlan, compare_policies
from tilewright.cli.main import cli
from tilewright.records.options import CompileOptions, Policy

from benchmarks.policies import Row, main, to_markdown
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.builder import GraphBuilder


def _softmax() -> onnx.ModelProto:
    g = GraphBuilder("softmax")
    g.output(g.op("Softmax", g.input("x", (37, 53)), axis=-1), (37, 53))
    return g.build()


def test_every_policy_has_its_row() -> None:
    plans = {plan.policy: plan for plan in compare_policies(_softmax(), "x86-64-avx2")}
    assert list(plans) == list(get_args(Policy))
    assert plans["greedy"].kernels == 1
    assert plans["unfused"].kernels is not None and plans["unfused"].kernels > 1
    best = min(plan.seconds for plan in plans.values() if plan.seconds is not None)
    assert plans["unified"].seconds == pytest.approx(best, rel=1e-4)


def _workloads() -> list[object]:
    """Returns the workloads of every suite; whole models, which take seconds to plan, do not land."""
    return [
        pytest.param(name, marks=pytest.mark.full if workload.suite in ("models", "networks") else ())
        for name, workload in WORKLOADS.items()
    ]


@pytest.mark.lands(one_in=100)
@pytest.mark.parametrize("target", ["x86-64-avx512", "cuda:h200"])
@pytest.mark.parametrize("workload", _workloads())
def test_unified_is_never_worse(workload: str, target: str) -> None:
    plans = {plan.policy: plan for plan in compare_policies(WORKLOADS[workload].build(), target)}
    if not plans:
        pytest.skip("Tilewright has nothing to compute here")
    best = plans["unified"].seconds
    assert best is not None
    for policy, plan in plans.items():
        # The exhaustive search also knows groupings that no seed leads to.
        if policy != "exhaustive" and plan.seconds is not None:
            assert best <= plan.seconds * 1.0001, policy


def test_a_policy_that_declines_says_why() -> None:
    g = GraphBuilder("chain")
    value = g.input("x", (7, 5))
    for _ in range(6):
        value = g.op("Softmax", value, axis=-1)
    g.output(value, (7, 5))
    plans = {plan.policy: plan for plan in compare_policies(g.build(), "x86-64-avx2")}
    assert plans["exhaustive"].seconds is None
    assert "at most 10 ops" in str(plans["exhaustive"].declined)


def test_the_command_line_prints_a_table(tmp_path: Path) -> None:
    model = tmp_path / "softmax.onnx"
    onnx.save(_softmax(), model)
    arguments = ["explain", str(model), "--policy", "all", "--target", "x86-64-avx2", "--plan-seconds", "0"]
    text = CliRunner().invoke(cli, arguments)
    assert text.exit_code == 0, text.output
    assert all(policy in text.output for policy in get_args(Policy))
    data = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).output)
    assert {entry["policy"] for entry in data} == set(get_args(Policy))


def test_the_benchmark_reports_ratios() -> None:
    def plan(policy: str, seconds: float, kernels: int) -> PolicyPlan:
        return PolicyPlan(
            policy=policy,
            planning_seconds=1.5,
            seconds=seconds,
            kernels=kernels,
            memory_intensive_kernels=kernels,
            memory_intensive_bytes=100.0 * kernels,
        )

    plans = (
        plan("greedy", 4e-6, 3),
        plan("unfused", 9e-6, 8),
        plan("xla", 8e-6, 5),
        plan("fusionstitching", 5e-6, 2),
        plan("unified", 2e-6, 1),
    )
    rounds = {"greedy": [4e-6, 5e-6, 4e-6], "unified": [3e-6, 4e-6, 3e-6]}
    row = Row(
        target="cpu", workload="one", dtype="f32", plans=plans, rounds=rounds, simulated={"xla": 2_000_000}
    )
    text = to_markdown([row])
    assert "| one | 4 us, 3 | 9 us, 8 |" in text
    assert "| one | greedy | 4 | 4 | 3 | 0.00 |  | 1.50 |" in text
    assert "| one | xla | 8 |  | 5 | 0.00 | 2.00 | 1.50 |" in text
    assert "- predicted, unified / greedy: 0.500 over 1 workloads" in text
    assert "- measured, unified / greedy: 0.750 over 1 workloads; slower beyond the interval: none" in text
    assert "- predicted against measured: off by 17% in the median of 2" in text
    assert "- memory-intensive kernels, fusionstitching / xla: 40%" in text
    assert "- memory-intensive bytes, fusionstitching / unfused: 25%" in text


def test_other_commands_have_no_policy_all(tmp_path: Path) -> None:
    refused = CliRunner().invoke(cli, ["compile", "x.onnx", "--policy", "all"])
    assert refused.exit_code == 2
    assert "'all' is not one of" in refused.output


def test_an_impossible_budget_is_refused() -> None:
    with pytest.raises(tilewright.CompileError, match="plan_seconds=-1 is not possible"):
        CompileOptions(plan_seconds=-1)


@pytest.mark.parametrize(
    ("option", "target"), [(["--measure", "1"], "cuda:h200"), (["--simulate"], "x86-64-avx2")], ids=str
)
def test_an_option_that_no_target_has_a_use_for_is_refused(
    option: list[str], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--target", target, *option])
    assert f"{option[0]} runs programs for a" in capsys.readouterr().err


def test_an_option_that_one_of_several_targets_has_a_use_for_is_taken() -> None:
    assert main(["--target", "cuda:h200,x86-64-avx2", "--measure", "1", "--workloads", "none-of-them"]) == 2
