"""Choices of forms are measured against their opposites, and programs have the choices that win."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import tilewright
from tilewright import Plan
from tilewright.tuning.timer import TimingError
from tuning_cases import StubTimer, compile_rows, tune

_FORM = "merged contractions"


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose two gates read the same tensor, so that the rule makes one contraction of them."""
    from benchmarks.workloads import MmoeOptions, mmoe

    path = tmp_path_factory.mktemp("forms") / "mmoe.onnx"
    onnx.save(mmoe(MmoeOptions()), path)
    return path


def _is_taken(plan: Plan | None) -> bool:
    assert plan is not None
    [choice] = [choice for choice in plan.forms if choice.form == _FORM]
    return choice.taken


def _by_ops(seconds: Callable[[int], float]) -> StubTimer:
    """Returns a timer whose seconds are a function of the number of ops of a plan."""
    return StubTimer(lambda plan: seconds(sum(len(g.ops) for k in plan.kernels for g in k.groups)))


@pytest.fixture(scope="module")
def opposed(mixture: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tilewright.Tuning]:
    """A database in which the opposite of the rule's choice won, because fewer ops take less time."""
    database = tmp_path_factory.mktemp("opposed") / "db"
    return database, tune(mixture, database, _by_ops(lambda ops: 1e-6 * ops), candidates=2)


# The rule's choice is kept if its opposite is not faster, and the program says that this was measured.
def test_choice_of_the_rule_that_wins_is_kept(mixture: Path, tmp_path: Path) -> None:
    tuning = tune(mixture, tmp_path / "db", _by_ops(lambda ops: 1e-3), candidates=2)
    [form] = tuning.forms
    assert not form.is_changed and form.decision.form == f"{_FORM} declined"
    program = compile_rows(mixture, database=tmp_path / "db")
    assert _is_taken(program.plan)
    assert any(one.form == form.decision.form for kernel in program.kernels for one in kernel.measured)


def test_opposite_choice_that_wins_is_compiled(
    mixture: Path, opposed: tuple[Path, tilewright.Tuning]
) -> None:
    from tilewright.reference.oracle import float64_reference, random_inputs, relative_error

    database, tuning = opposed
    [form] = tuning.forms
    assert form.is_changed
    plain, program = compile_rows(mixture, database=False), compile_rows(mixture, database=database)
    assert _is_taken(plain.plan) and not _is_taken(program.plan)
    assert program.metadata.notes == ()
    model = onnx.load(mixture)
    inputs = random_inputs(model, 0)
    for actual, expected in zip(program(*inputs), float64_reference(model, inputs), strict=True):
        assert relative_error(actual, expected) < 1e-5


# The proof stands in the program.
def test_measured_form_is_explained(mixture: Path, opposed: tuple[Path, tilewright.Tuning]) -> None:
    program = compile_rows(mixture, database=opposed[0])
    assert f"with {_FORM} declined for " in program.explain()


def test_known_forms_are_not_measured_again(
    mixture: Path, opposed: tuple[Path, tilewright.Tuning], tmp_path: Path
) -> None:
    shutil.copy(opposed[0], tmp_path / "db")
    again = _by_ops(lambda ops: 1e-3)
    tuning = tune(mixture, tmp_path / "db", again, candidates=2)
    assert again.asked == []
    assert [(form.is_new, form.is_changed) for form in tuning.forms] == [(False, True)]


# Without a time for one of the choices, the rule decides.
def test_choice_that_does_not_run_changes_nothing(mixture: Path, tmp_path: Path) -> None:
    def refuse(ops: int) -> float:
        raise TimingError("died")

    tuning = tune(mixture, tmp_path / "db", _by_ops(refuse), candidates=2)
    assert tuning.forms == ()
    assert _is_taken(compile_rows(mixture, database=tmp_path / "db").plan)
