"""Looks up the database's decisions for the subprograms of a program that is being compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import PassError, TuningError
from tilewright.records.plan import Plan
from tilewright.tuning.contest import this_machine
from tilewright.tuning.database import Database, Decision, ProgramDecision
from tilewright.tuning.regions import PROGRAM
from tilewright.tuning.subprograms import Planned, Setting, Subprogram, list_subprograms
from tilewright.tuning.substitute import substitute
from tilewright.worker.process import Worker

# Seconds to wait for a lock. It is short, because a compilation can do without the database.
_WAIT_SECONDS = 2.0
_ABOUT_THE_PLAN = ("key", "name", "target", "plan")


@dataclass(frozen=True)
class TunedPlan:
    """A plan with decisions substituted, and the measurements of every kernel."""

    plan: Plan
    decisions: Mapping[str, tuple[Decision, ...]]
    """Decisions by kernel: those of its fusion groups, or that of the subprogram that it is a piece of."""

    def note(self, report: dict[str, Any]) -> None:
        """Adds the measurements to the compiler's report."""
        for kernel in report.get("kernels", ()):
            if decisions := self.decisions.get(kernel["name"]):
                kernel["measured"] = [
                    {name: value for name, value in asdict(d).items() if name not in _ABOUT_THE_PLAN}
                    for d in decisions
                ]


def tuned_plan(
    text: str, setting: Setting, *, database: Path, worker: Worker, folder: Path
) -> tuple[TunedPlan | None, str]:
    """Returns the plan of a module with earlier decisions substituted, and a note if the database cannot be used, or if
    decisions were made on another machine.

    The plan is None if there are no decisions.
    """
    if not database.is_file():
        return None, ""
    try:
        with Database(database, wait_seconds=_WAIT_SECONDS) as known:
            if not known.holds(setting.target.name):
                return None, ""
            planned, setting = list_subprograms(text, setting, worker=worker, folder=folder)
            program = known.program(setting.key(planned.form, against=PROGRAM))
            note = ""
            if program is not None:
                try:
                    planned, setting = list_subprograms(
                        text, setting, worker=worker, folder=folder, plan=program.plan
                    )
                except PassError as error:
                    program, note = None, f"{database} has a plan that does not fit ({error.message})"
            found = [(s, known.decision(setting.key(s.form))) for s in planned.subprograms]
            proofs = _proofs(known, program)
    except TuningError as error:
        return None, f"compiled without measurements: {error}"
    hits = [(subprogram, decision) for subprogram, decision in found if decision is not None]
    if planned.plan is None or not (hits or program):
        return None, note
    plan = substitute(planned.plan, [(subprogram, decision.plan) for subprogram, decision in hits])
    decisions = _by_kernel(planned, plan, hits, proofs)
    note = note or _foreign([decision for of in decisions.values() for decision in of], setting)
    return TunedPlan(plan, decisions), note


_Proofs = list[tuple[frozenset[int], Decision]]


def _proofs(known: Database, program: ProgramDecision | None) -> _Proofs:
    """Returns the decisions on the regions and forms of a program that are still in the database."""
    found = [] if program is None else [(proof.ops, known.decision(proof.key)) for proof in program.proofs]
    return [(frozenset(ops), decision) for ops, decision in found if decision is not None]


def _foreign(decisions: list[Decision], setting: Setting) -> str:
    """Returns a note if processors other than this one decided. GPUs are not where programs are compiled."""
    others = {decision.machine for decision in decisions} - {this_machine()}
    if not setting.target.kind.in_process or not others:
        return ""
    return f"plans were measured on another machine ({', '.join(sorted(others))}), where others may be faster"


def _by_kernel(
    planned: Planned, after: Plan, hits: list[tuple[Subprogram, Decision]], proofs: _Proofs
) -> dict[str, tuple[Decision, ...]]:
    """Assigns decisions to kernels of the new plan: each op of a measured subprogram leads to the kernel that it is
    in now, and a region to the kernels inside."""
    assert planned.plan is not None
    kernel_of = {op.id: kernel.name for kernel in after.kernels for part in kernel.groups for op in part.ops}
    decisions: dict[str, dict[str, Decision]] = {}
    for subprogram, decision in hits:
        kernel = planned.plan.kernels[subprogram.kernel]
        if len(kernel.groups) > 1 and not decision.is_fused:
            continue  # The subprogram stays in one kernel with its neighbours.
        for op in kernel.groups[subprogram.part].ops:
            if op.id in kernel_of:
                decisions.setdefault(kernel_of[op.id], {})[decision.key] = decision
    for kernel in after.kernels:
        own = {op.id for group in kernel.groups for op in group.ops}
        about = [decision for ops, decision in proofs if own <= ops]
        regions = [decision for decision in about if not decision.form]
        for decision in [*regions[:1], *(one for one in about if one.form)]:
            decisions.setdefault(kernel.name, {})[decision.key] = decision
    return {name: tuple(of.values()) for name, of in decisions.items()}
