"""`explain --policy all`: what every policy makes of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import onnx
import pytest
import tilewright
from click.testing import CliRunner
from tilewright.api.policies import compare_policies
from tilewright.cli.main import cli
from tilewright.records.options import CompileOptions, Policy

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


def test_other_commands_have_no_policy_all(tmp_path: Path) -> None:
    refused = CliRunner().invoke(cli, ["compile", "x.onnx", "--policy", "all"])
    assert refused.exit_code == 2
    assert "'all' is not one of" in refused.output


def test_an_impossible_budget_is_refused() -> None:
    with pytest.raises(tilewright.CompileError, match="plan_seconds=-1 is not possible"):
        CompileOptions(plan_seconds=-1)
