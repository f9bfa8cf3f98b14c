"""Choices of forms in plans: what an edited plan chooses is carried out, with the same numbers, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from simulated_products import TOLERANCE, Product
from tilewright.records.plan import FormChoice, Plan
from tilewright.reference.oracle import float64_reference
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder

Array = np.ndarray[Any, Any]

CPU, GPU = "x86-64-avx2", "cuda:h200"
ROWS, DEPTH, COLUMNS = 37, 53, 96
# A sum of 53 products of numbers around one, in f32 and in any order.
BOUND = 1e-4


def _weights() -> list[Array]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal((DEPTH, COLUMNS)).astype(np.float32) for _ in range(2)]


def _projections() -> onnx.ModelProto:
    """Returns two matmuls of one tensor, which the rule merges on a CPU."""
    g = GraphBuilder("projections")
    x = g.input("x", [ROWS, DEPTH])
    for weight in _weights():
        g.output(g.op("MatMul", x, g.constant(weight)), [ROWS, COLUMNS])
    return g.build()


def _plan(program: tilewright.Program) -> Plan:
    assert program.plan is not None
    return program.plan


def _merge(plan: Plan) -> FormChoice:
    (merge,) = [form for form in plan.forms if form.form == "merged contractions"]
    return merge


def _contractions(program: tilewright.Program) -> int:
    return sum(
        bool(op.micro_kernel)
        for kernel in _plan(program).kernels
        for group in kernel.groups
        for op in group.ops
    )


def _check_projections(program: tilewright.Program) -> None:
    x = np.random.default_rng(8).standard_normal((ROWS, DEPTH)).astype(np.float32)
    for result, weight in zip(program(x), _weights(), strict=True):
        expected = x.astype(np.float64) @ weight.astype(np.float64)
        assert np.abs(np.asarray(result) - expected).max() < BOUND


def test_the_plan_and_explain_have_the_choice_with_its_reason() -> None:
    program = tilewright.compile(_projections(), CPU, threads=1)
    merge = _merge(_plan(program))
    assert (merge.taken, merge.ops) == (True, ["linalg.matmul", "linalg.matmul"])
    assert merge.parameters == {"heads": [1], "width": [COLUMNS]}
    assert "merged contractions taken, heads 1, width 96: fewer launches" in program.explain()
    assert _contractions(program) == 1


def test_a_form_that_the_plan_declines_is_not_built() -> None:
    wanted = _plan(tilewright.compile(_projections(), CPU, threads=1)).forms_only()
    _merge(wanted).taken = False
    program = tilewright.compile(_projections(), CPU, threads=1, plan=wanted)
    assert _contractions(program) == 2
    assert not _merge(_plan(program)).taken
    assert "merged contractions declined: the given plan says so" in program.explain()
    _check_projections(program)


def test_edited_parameters_are_built() -> None:
    wanted = _plan(tilewright.compile(_projections(), CPU, threads=1)).forms_only()
    _merge(wanted).parameters = {"heads": [4], "width": [12]}
    program = tilewright.compile(_projections(), CPU, threads=1, plan=wanted)
    assert _merge(_plan(program)).parameters == {"heads": [4], "width": [12]}
    assert _contractions(program) == 1
    _check_projections(program)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameters": {"heads": [5], "width": [12]}}, "96 columns are no 5 heads of whole slots of 12"),
        ({"ops": ["linalg.generic"]}, "names form 'merged contractions' 0 of linalg.generic, but the graph"),
        (
            {"number": 1},
            "names form 'merged contractions' 1 of linalg.matmul, linalg.matmul; the graph offers 1",
        ),
        ({"form": "hello"}, "expected the name of a form, such as 'as-is' or 'online softmax' at plan.forms"),
    ],
    ids=["parameters", "ops", "number", "form"],
)
def test_what_the_graph_does_not_offer_is_refused(change: dict[str, Any], said: str) -> None:
    wanted = _plan(tilewright.compile(_projections(), CPU, threads=1)).forms_only()
    for name, changed in change.items():
        setattr(_merge(wanted), name, changed)
    with pytest.raises(tilewright.PlanError, match=said):
        tilewright.compile(_projections(), CPU, threads=1, plan=wanted)


def test_kernels_for_other_forms_are_refused() -> None:
    plan = _plan(tilewright.compile(_projections(), CPU, threads=1))
    _merge(plan).taken = False
    with pytest.raises(tilewright.PlanError, match="op 4 does not exist; the graph has 4 ops"):
        tilewright.compile(_projections(), CPU, threads=1, plan=plan)


def test_a_split_that_the_rule_declines_computes_the_same(tmp_path: Path) -> None:
    """A matmul of few tiles and short K stays whole by the rule; its plan may split K all the same."""
    product = Product(left=(5, 256), right=(256, 24))
    model, inputs = product.build(), product.inputs()
    wanted = _plan(tilewright.compile(model, GPU)).forms_only()
    (split,) = [form for form in wanted.forms if form.form == "two-phase reduction"]
    assert not split.taken
    split.taken, split.parameters = True, {"dims": [2], "parts": [4]}
    program = tilewright.compile(model, GPU, plan=wanted, dump_dir=tmp_path)
    assert "two-phase reduction instead of the model's algebra" in program.explain()
    ran = simulate_program(program, tmp_path, inputs)
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    np.testing.assert_allclose(
        ran.outputs[0].astype(np.float64),
        expected,
        rtol=4 * TOLERANCE["f32"],
        atol=4 * TOLERANCE["f32"] * np.abs(expected).mean(),
    )
