"""Tuning times plans, and later compilations use its decisions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from tilewright import Plan
from tilewright.tuning.contest import BURSTS
from tilewright.tuning.database import Database
from tilewright.tuning.timer import Build, ProcessTimer, TimingError
from tuning_cases import TARGET, StubTimer, compile_rows, cut, halves, tune

from benchmarks.workloads.builder import GraphBuilder


# A compilation after tuning takes the tuned plan, and explain says what was measured.
def test_decision_changes_the_plan_and_is_shown(rows_path: Path, tuned: Path, tmp_path: Path) -> None:
    plain, program = compile_rows(rows_path, database=False), compile_rows(rows_path, database=tuned)
    assert plain.plan is not None and program.plan is not None
    assert plain.plan.kernels[0].groups[0].tiles[0] < 32
    assert program.plan.kernels[0].groups[0].tiles[0] == 32
    assert program.metadata.notes == ()
    [measured] = [one for one in program.kernels[0].measured if not one.region_ops]
    assert measured.ratio == pytest.approx(0.5, rel=0.01)
    assert measured.seconds == pytest.approx(1e-3, rel=0.01)
    assert "measured: " in program.explain() and "0.50 [0.50, 0.50] of the unmeasured" in program.explain()
    assert "measured" not in plain.explain()
    program.save(tmp_path / "rows.vmfb")
    assert tilewright.load(tmp_path / "rows.vmfb").kernels[0].measured == program.kernels[0].measured
    x = np.random.default_rng(0).standard_normal((64, 100)).astype(np.float32)
    np.testing.assert_allclose(program(x)[0], plain(x)[0], rtol=1e-5)


# A plan that won on two threads may lose on one.
def test_other_threads_do_not_use_it(rows_path: Path, tuned: Path) -> None:
    program = tilewright.compile(rows_path, TARGET, threads=1, tuning=tuned)
    assert program.kernels[0].measured == ()


# A tie changes nothing.
def test_unmeasured_plan_stays_where_nothing_is_faster(rows_path: Path, tmp_path: Path) -> None:
    tuning = tune(rows_path, tmp_path / "db", StubTimer(lambda plan: 1e-3))
    [one] = tuning.subprograms
    assert (one.decision.ratio, one.decision.is_fused) == (1.0, True)
    plain, program = (
        compile_rows(rows_path, database=False),
        compile_rows(rows_path, database=tmp_path / "db"),
    )
    assert plain.plan is not None and program.plan is not None
    assert plain.plan.kernels[0].groups == program.plan.kernels[0].groups
    assert "the unmeasured plan won" in program.explain()


def _layers_and_rows() -> onnx.ModelProto:
    """Two equal layers, and two softmaxes of their own that share a kernel."""
    g = GraphBuilder("layers")
    x = g.input("x", (8, 32))
    for _ in range(2):
        x = g.op("Softmax", g.op("Add", x, g.op("MatMul", x, g.weight((32, 32), fan_in=32))))
    g.output(x, (8, 32))
    for name, columns in (("u", 24), ("v", 40)):
        g.output(g.op("Softmax", g.input(name, (4, columns))), (4, columns))
    return g.build()


def test_subprogram_may_be_cut_and_repeated_layers_are_tuned_once(tmp_path: Path) -> None:
    """Every kernel is cut into several, in a model with packed kernels, whose groups stay together; results stay
    right."""
    from tilewright.reference.oracle import float64_reference, random_inputs, relative_error

    model = _layers_and_rows()
    onnx.save(model, tmp_path / "model.onnx")
    tuning = tune(tmp_path / "model.onnx", tmp_path / "db", StubTimer(cut), candidates=2)
    assert max(one.count for one in tuning.subprograms) >= 2
    assert len({one.decision.key for one in tuning.subprograms}) == len(tuning.subprograms)
    plain, program = (
        compile_rows(tmp_path / "model.onnx", database=database) for database in (False, tmp_path / "db")
    )
    assert plain.plan is not None and max(len(kernel.groups) for kernel in plain.plan.kernels) > 1
    assert len(program.kernels) > len(plain.kernels)
    assert program.metadata.notes == ()
    inputs = random_inputs(model, 0)
    for actual, expected in zip(program(*inputs), float64_reference(model, inputs), strict=True):
        assert relative_error(actual, expected) < 1e-5


# Every measurement is kept at once, because tuning takes long.
def test_interrupted_tuning_goes_on_where_it_stopped(rows_path: Path, tmp_path: Path) -> None:
    whole = StubTimer(halves)
    tune(rows_path, tmp_path / "whole", whole)
    first, second = StubTimer(halves, interrupt_at=10), StubTimer(halves)
    with pytest.raises(KeyboardInterrupt):
        tune(rows_path, tmp_path / "db", first)
    with Database(tmp_path / "db") as kept:
        assert kept.decisions() == []
    tuning = tune(rows_path, tmp_path / "db", second)
    # Finished work is not repeated; the plan that was interrupted starts again.
    done = len(first.asked) // BURSTS * BURSTS
    assert 0 < done < len(first.asked)
    assert len(second.asked) == len(whole.asked) - done
    assert tuning.subprograms[0].is_new
    third = StubTimer(halves)
    again = tune(rows_path, tmp_path / "db", third)
    assert third.asked == [] and not again.subprograms[0].is_new
    assert again.subprograms[0].decision == tuning.subprograms[0].decision


def test_hopeless_plans_are_timed_once(rows_path: Path, tmp_path: Path) -> None:
    """The unmeasured plan is timed first, and all others take ten times as long."""
    plan = compile_rows(rows_path, database=False).plan
    assert plan is not None
    own = plan.kernels[0].groups[0].tiles

    def rank(plan: Plan) -> float:
        return 1e-3 if len(plan.kernels) == 1 and plan.kernels[0].groups[0].tiles == own else 1e-2

    timer = StubTimer(rank)
    tuning = tune(rows_path, tmp_path / "db", timer, candidates=12)
    assert tuning.subprograms[0].decision.ratio == 1
    counts = Counter(timer.asked)
    assert timer.asked[:BURSTS] == [timer.asked[0]] * BURSTS
    assert counts.most_common()[-1][1] == 1


# A candidate that dies is noted and never chosen.
def test_plan_that_does_not_run_is_no_candidate(rows_path: Path, tmp_path: Path) -> None:
    def refuse(plan: Plan) -> float:
        if halves(plan) < 2e-3:
            raise TimingError("died")
        return 2e-3

    tuning = tune(rows_path, tmp_path / "db", StubTimer(refuse))
    assert tuning.subprograms[0].decision.plan.kernels[0].groups[0].tiles[0] != 32
    with Database(tmp_path / "db") as kept:
        problems = {m.problem for m in kept.measurements(tuning.subprograms[0].decision.key).values()}
    assert problems == {"", "died"}


# The real timer works on this machine.
def test_clock_times_kernels(rows_path: Path, tmp_path: Path) -> None:
    tuning = tilewright.tune(rows_path, "cpu", threads=[2], database=tmp_path / "db", candidates=2, jobs=1)
    # Which of the plans wins, and so how many subprograms there are, is a matter of times.
    assert tuning.subprograms
    assert all(one.decision.seconds > 0 for one in tuning.subprograms)


# Candidates run in a process of their own.
def test_timer_survives_what_it_times(tmp_path: Path) -> None:
    with ProcessTimer(tmp_path, threads=1) as timer, pytest.raises(TimingError):
        timer.seconds(Build(folder=tmp_path, candidate="none"))
