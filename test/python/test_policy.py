"""The policy by which a plan is made."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import get_args

import numpy as np
import onnx
import pytest
import tilewright
from click.testing import CliRunner
from onnx import TensorProto, helper
from tilewright.cli.main import cli
from tilewright.ir.opt import find_opt
from tilewright.records.options import Policy

from benchmarks.workloads import WORKLOADS


def _chain(ops: int) -> onnx.ModelProto:
    """Returns `ops` elementwise ops, each on the result of the one before, and a softmax of the last."""
    names = [f"v{number}" for number in range(ops + 1)]
    kinds = ("Exp", "Neg", "Abs")
    nodes = [
        helper.make_node(kinds[number % 3], [names[number]], [names[number + 1]]) for number in range(ops)
    ]
    nodes.append(helper.make_node("Softmax", [names[ops]], ["y"], axis=-1))
    shape = (37, 53)
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize("policy", get_args(Policy))
def test_every_policy_gives_the_same_numbers(policy: Policy) -> None:
    model = _chain(3)
    x = np.random.default_rng(7).standard_normal((37, 53)).astype(np.float32)
    program = tilewright.compile(model, policy=policy, threads=1)
    assert program.plan is not None
    assert program.plan.policy == policy
    exact = np.abs(-np.exp(x.astype(np.float64)))
    exact = np.exp(exact - exact.max(axis=-1, keepdims=True))
    exact /= exact.sum(axis=-1, keepdims=True)
    # The exponents are at most e^4, so an error of one unit in the last place of f32 there is 4e-6 in the exponential.
    np.testing.assert_allclose(program(x)[0], exact, rtol=2e-5, atol=1e-7)


def test_unfused_has_more_kernels() -> None:
    unfused, fused = (tilewright.compile(_chain(3), policy=policy).plan for policy in ("unfused", "greedy"))
    assert unfused is not None
    assert fused is not None
    assert len(unfused.kernels) > len(fused.kernels)


def test_exhaustive_tries_the_forms_that_the_rules_decline() -> None:
    model = WORKLOADS["argmax-512x30522"].build()
    by_rule, best = (
        tilewright.compile(model, "cuda:h200", deploy=False, tuning=False, policy=policy).plan
        for policy in ("greedy", "exhaustive")
    )
    assert by_rule is not None
    assert best is not None
    changed = [
        (rule, form) for rule, form in zip(by_rule.forms, best.forms, strict=True) if rule.taken != form.taken
    ]
    assert changed
    for _, form in changed:
        assert form.reason.startswith("a search over forms predicts ")
        assert (form.seconds < form.otherwise_seconds) == form.taken


def test_a_model_too_large_for_a_policy_is_refused() -> None:
    with pytest.raises(tilewright.PlanError, match="all partitions of at most 10 ops"):
        tilewright.compile(_chain(12), policy="exhaustive")


def test_an_unknown_policy_is_refused_with_the_list() -> None:
    with pytest.raises(tilewright.CompileError, match="policy='magic' is unknown") as error:
        tilewright.compile(_chain(1), policy="magic")  # type: ignore[arg-type]
    assert all(policy in str(error.value.hint) for policy in get_args(Policy))


def test_the_command_line_takes_a_policy(tmp_path: Path) -> None:
    model = tmp_path / "chain.onnx"
    onnx.save(_chain(3), model)
    refused = CliRunner().invoke(cli, ["compile", str(model), "--policy", "magic"])
    assert refused.exit_code != 0
    assert all(policy in refused.output for policy in get_args(Policy))
    made = tmp_path / "chain.vmfb"
    taken = CliRunner().invoke(cli, ["compile", str(model), "--policy", "unfused", "-o", str(made)])
    assert taken.exit_code == 0, taken.output
    assert made.exists()


def test_python_knows_all_policies_of_the_compiler() -> None:
    refused = subprocess.run(
        [find_opt(), "--tile-form-subprograms=policy=magic", "-"],
        input="module {}",
        capture_output=True,
        text=True,
        check=False,
    )
    listed = refused.stderr.partition("known policies: ")[2].splitlines()[0]
    assert sorted(listed.split(", ")) == sorted(get_args(Policy))
