"""Tests of every operator in every type, rank and form: its result is right, and our kernels compute it.

Cases are compiled by the dozen, as independent parts of one model, so that small kernels also get packed together. On
the simulated device, one case of each operator and type runs; the random graphs of `test_simulated_graphs.py` cover
more.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
from compiled import Compiled, ahead, compiled
from tilewright.reference.oracle import Array, float64_reference, model_tolerance, relative_error

from fuzz.judge import VIEWS, simulate
from fuzz.merge import merge, part_of
from fuzz.op_table import OpCase, op_table

pytestmark = pytest.mark.cpu_levels(landing=("x86-64-avx2",))

_CASES_PER_MODEL = 64
_LAST_LAND_ONE_IN = 2
"""Each operator has a last case in each type, of the highest rank: one in so many of these lands."""
_OTHERS_LAND_ONE_IN = 16
"""One in so many of the other cases lands."""


def _batches() -> dict[str, Sequence[OpCase]]:
    """Returns the cases of one operator, in models of at most `_CASES_PER_MODEL`, named after operator and first
    case."""
    by_op: dict[str, list[OpCase]] = {}
    for case in op_table():
        by_op.setdefault(_op(case.id), []).append(case)
    return {
        f"{op}-{start}": cases[start : start + _CASES_PER_MODEL]
        for op, cases in by_op.items()
        for start in range(0, len(cases), _CASES_PER_MODEL)
    }


def _op(identifier: str) -> str:
    return identifier.partition("-")[0]


_BATCHES = _batches()


def _last_of_each(cases: Sequence[OpCase]) -> list[OpCase]:
    """Returns the last case of each operator in each type: it has the highest rank, with dims that are broadcast or
    kept."""
    return list({case.id.partition("-r")[0]: case for case in cases}.values())


def _simulated_batches() -> dict[str, Sequence[OpCase]]:
    last = _last_of_each(op_table())
    starts = range(0, len(last), _CASES_PER_MODEL)
    return {f"{last[start].id}": last[start : start + _CASES_PER_MODEL] for start in starts}


_SIMULATED_BATCHES = _simulated_batches()


def _landing(cases: Sequence[OpCase]) -> list[OpCase]:
    """Returns the cases that land, drawn by their names, and the last one."""
    last = {case.id for case in _last_of_each(cases)}

    def lands(case: OpCase) -> bool:
        one_in = _LAST_LAND_ONE_IN if case.id in last else _OTHERS_LAND_ONE_IN
        return case is cases[-1] or zlib.crc32(case.id.encode()) % one_in == 0

    return [case for case in cases if lands(case)]


@dataclass
class _Outcome:
    """Cases of a batch that went wrong, and launches of IREE besides our kernels."""

    wrong: list[str] = field(default_factory=list)
    not_ours: list[str] = field(default_factory=list)
    foreign_launches: int = 0


def _run(name: str, *, thorough: bool) -> _Outcome:
    cases = _BATCHES[name] if thorough else _landing(_BATCHES[name])
    outcome = _Outcome()
    with compiled(merge({case.id: case.model for case in cases}, name=name)) as result:
        outputs = result.program(*(array for case in cases for array in case.inputs))
        launches = result.launches()
        ours = _cases_in_our_kernels(result)
    for case, y in zip(cases, outputs, strict=True):
        if (message := _mistake(case, y)) is not None:
            outcome.wrong.append(message)
        if case.id not in ours:
            outcome.not_ours.append(case.id)
    outcome.foreign_launches = launches.others + launches.copies + launches.fills
    return outcome


def _mistake(case: OpCase, y: Array) -> str | None:
    expected = float64_reference(case.model, case.inputs)[0]
    error, limit = relative_error(y, expected), model_tolerance(case.model)
    return f"{case.id}: {error:.1e}, at most {limit:.1e}" if error > limit else None


def _cases_in_our_kernels(result: Compiled) -> set[str]:
    report = result.program.metadata.report
    taken = {part_of(op.location) for kernel in report.kernels for op in kernel.ops}
    left = {part_of(op.location) for op in report.left_to_iree if op.op not in VIEWS}
    return {case for case in taken if case not in left}


@pytest.fixture(scope="module")
def outcome_of(request: pytest.FixtureRequest, cpu_target: str) -> Iterator[Callable[[str], _Outcome]]:
    yield from ahead(request, "batch", partial(_run, thorough=request.config.getoption("--all")))


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("batch", _BATCHES)
def test_operator_is_right(batch: str, outcome_of: Callable[[str], _Outcome]) -> None:
    assert outcome_of(batch).wrong == []


@pytest.mark.parametrize("batch", _BATCHES)
def test_operator_runs_in_our_kernels(batch: str, outcome_of: Callable[[str], _Outcome]) -> None:
    """The report names every case as ours, and the program launches nothing else."""
    outcome = outcome_of(batch)
    assert outcome.not_ours == []
    assert outcome.foreign_launches == 0


@pytest.mark.lands(one_in=2)
@pytest.mark.cpu_levels("cpu")
@pytest.mark.parametrize("batch", _SIMULATED_BATCHES)
def test_operator_is_right_on_a_gpu(batch: str, pytestconfig: pytest.Config) -> None:
    """Our kernels compute it there as well, and no detector finds a bug."""
    cases = _SIMULATED_BATCHES[batch]
    if not pytestconfig.getoption("--all"):
        cases = _landing(cases)
    arrays = [array for case in cases for array in case.inputs]
    ran = simulate(merge({case.id: case.model for case in cases}), arrays, target="sim:h200", dump_dir=None)
    assert [
        message for case, y in zip(cases, ran.outputs, strict=True) if (message := _mistake(case, y))
    ] == []
    assert ran.incomplete == frozenset()
    assert [left for left in ran.report.left_to_iree if left.op not in VIEWS] == []
