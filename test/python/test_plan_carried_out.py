"""A plan is carried out on the model that it was made for, as it is or with other tiles."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import helper
from plan_cases import COLUMNS, ROWS, TERMS, Stage, contraction
from plan_cases import product as product
from plan_cases import stages as stages
from plan_cases import w as w

Array = np.ndarray[Any, Any]


Json = dict[str, Any]


@pytest.mark.parametrize("target", ["x86-64-v2", "cuda:h200"])
def test_the_plan_as_it_is_is_carried_out(stages: dict[str, Stage], tmp_path: Path, target: str) -> None:
    stage = stages[target]
    carried = stage.carry_out(stage.plan, tmp_path)
    assert carried.plan == stage.plan
    reported = [op.micro_kernel for kernel in carried.report.kernels for op in kernel.ops if op.micro_kernel]
    assert reported == [contraction(stage.plan)["microKernel"]]


def test_a_plan_without_a_target_is_for_any(stages: dict[str, Stage], tmp_path: Path) -> None:
    stage = stages["x86-64-v2"]
    assert stage.carry_out({**stage.plan, "target": ""}, tmp_path).report.kernels


def test_a_plan_of_another_model_is_refused(stages: dict[str, Stage], w: Array, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Relu", ["s"], ["t"]),
        helper.make_node("LogSoftmax", ["t"], ["p"], axis=-1),
    ]
    other = make_model(nodes, [value("x", [ROWS, TERMS])], [value("p", [ROWS, COLUMNS])], {"w": w})
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(stages["x86-64-v2"].plan))
    with pytest.raises(tilewright.PlanError):
        tilewright.compile(other, "x86-64-v2", threads=1, plan=path)


def test_the_terms_of_a_block_are_carried_out(
    product: onnx.ModelProto, stages: dict[str, Stage], tmp_path: Path, w: Array
) -> None:
    """The third size of a micro kernel (K) is the plan's to choose. The sums are over 53 terms in f32."""
    plan = copy.deepcopy(stages["x86-64-v2"].plan)
    name, sizes = contraction(plan)["microKernel"].split("-")
    label = f"{name}-{'x'.join(sizes.split('x')[:2])}x16"
    contraction(plan)["microKernel"] = label
    contraction(plan)["tilings"] = []  # they follow from the label
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    program = tilewright.compile(product, "x86-64-v2", threads=1, plan=path)
    assert label in program.explain()
    x = np.random.default_rng(1).standard_normal((ROWS, TERMS)).astype(np.float32)
    scores = np.exp(np.tanh(x.astype(np.float64) @ w.astype(np.float64)))
    np.testing.assert_allclose(program(x)[0], scores / scores.sum(axis=-1, keepdims=True), rtol=2e-5)
