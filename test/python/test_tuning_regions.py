"""Regions in which plans differ are measured, and the kernels that win replace the planner's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import tilewright
from tilewright import Plan
from tilewright.tuning.database import Database
from tuning_cases import StubTimer, compile_rows, cut, tune


@pytest.fixture(scope="module")
def rows_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A softmax of rows, which the planner makes one kernel."""
    from benchmarks.workloads import stitch

    path = tmp_path_factory.mktemp("rows") / "rows.onnx"
    onnx.save(stitch.softmax((64, 100)), path)
    return path


def _ops(plan: Plan) -> list[int]:
    """Returns how many ops each kernel computes."""
    return [sum(len(group.ops) for group in kernel.groups) for kernel in plan.kernels]


# A fusion that loses against a kernel for each op is not compiled, and the proof stands in the program.
def test_fusion_that_loses_is_dropped(rows_path: Path, tmp_path: Path) -> None:
    tuning = tune(rows_path, tmp_path / "db", StubTimer(cut))
    [region] = [region for region in tuning.regions if region.taken]
    assert region.decision.ratio < 1 and region.decision.unfused_seconds == region.decision.seconds
    program = compile_rows(rows_path, database=tmp_path / "db")
    assert program.plan is not None and set(_ops(program.plan)) == {1}
    assert program.metadata.notes == ()
    for kernel in program.kernels:
        assert [one.region_ops for one in kernel.measured if one.region_ops] == [region.decision.region_ops]
    assert f"in a region of {region.decision.region_ops} ops: " in program.explain()
    program.save(tmp_path / "rows.vmfb")
    saved = tilewright.load(tmp_path / "rows.vmfb")
    assert [kernel.measured for kernel in saved.kernels] == [kernel.measured for kernel in program.kernels]


# A fusion that wins was measured against a kernel for each op, and says so.
def test_fusion_that_wins_has_a_proof(rows_path: Path, tmp_path: Path) -> None:
    tune(rows_path, tmp_path / "db", StubTimer(lambda plan: 1e-3 * len(plan.kernels)))
    program = compile_rows(rows_path, database=tmp_path / "db")
    assert program.plan is not None and len(program.plan.kernels) == 1
    [proof] = [one for one in program.kernels[0].measured if one.region_ops]
    assert proof.ratio == 1 and proof.unfused_seconds is not None
    assert proof.unfused_seconds > 2 * proof.seconds


# Kernels change across the borders of the planner's own.
@pytest.mark.full
def test_borders_between_kernels_move(tmp_path: Path) -> None:
    """Of two plans with two kernels, that with the smaller largest kernel wins; one kernel stays one."""
    from tilewright.reference.oracle import float64_reference, random_inputs, relative_error

    from benchmarks.workloads.transformers import Gpt2Options, gpt2_block

    def rank(plan: Plan) -> float:
        return {1: 1e-6, 2: 1e-4 * max(_ops(plan))}.get(len(plan.kernels), 1.0)

    model = gpt2_block(Gpt2Options(hidden=256, heads=4, sequence=64))
    path = tmp_path / "gpt2.onnx"
    onnx.save(model, path)
    tune(path, tmp_path / "db", StubTimer(rank), candidates=5)
    plain, program = (compile_rows(path, database=database) for database in (False, tmp_path / "db"))
    before, after = _members(plain.plan), _members(program.plan)
    assert any(
        len(own & other) not in (0, len(other)) and not own < other for own in after for other in before
    )
    assert program.metadata.notes == ()
    inputs = random_inputs(model, 0)
    for actual, expected in zip(program(*inputs), float64_reference(model, inputs), strict=True):
        assert relative_error(actual, expected) < 1e-5


def _members(plan: Plan | None) -> list[set[int]]:
    """Returns the ops of each kernel."""
    assert plan is not None
    return [{op.id for group in kernel.groups for op in group.ops} for kernel in plan.kernels]


# Decisions on regions are kept like all others.
def test_known_regions_are_not_measured_again(rows_path: Path, tmp_path: Path) -> None:
    tune(rows_path, tmp_path / "db", StubTimer(cut))
    again = StubTimer(cut)
    tuning = tune(rows_path, tmp_path / "db", again)
    assert again.asked == [] and not any(region.is_new for region in tuning.regions)


# A database from another machine is used with a note that names that machine.
def test_plans_of_another_machine_are_noted(rows_path: Path, tmp_path: Path) -> None:
    tune(rows_path, tmp_path / "db", StubTimer(cut))
    with Database(tmp_path / "db") as kept:
        for decision in kept.decisions():
            kept.keep_decision(dataclasses.replace(decision, machine="a machine far away"))
    program = compile_rows(rows_path, database=tmp_path / "db")
    assert any("another machine (a machine far away)" in note for note in program.metadata.notes)


# A plan of a program that does not fit is left out, and the compilation succeeds.
def test_plan_that_does_not_fit_is_left_out(rows_path: Path, tmp_path: Path) -> None:
    tune(rows_path, tmp_path / "db", StubTimer(cut))
    with Database(tmp_path / "db") as kept:
        [program] = kept.programs()
        program.plan.kernels[0].groups[0].ops[0].id = 99
        kept.keep_program(program)
    compiled = compile_rows(rows_path, database=tmp_path / "db")
    assert any("does not fit" in note for note in compiled.metadata.notes)


def _moved(database: Path, other: Path, take: Callable[[Database, Path], int]) -> None:
    with Database(other) as kept:
        take(kept, database)


# A file of decisions has the plans of programs, too.
def test_imported_decisions_have_programs(rows_path: Path, tmp_path: Path) -> None:
    tune(rows_path, tmp_path / "db", StubTimer(cut))
    _moved(tmp_path / "db", tmp_path / "other", Database.take_from)
    program = compile_rows(rows_path, database=tmp_path / "other")
    assert program.plan is not None and set(_ops(program.plan)) == {1}
