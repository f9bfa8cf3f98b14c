"""What a compilation takes from the database: decisions for the subprograms of its program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import TuningError
from tilewright.records.plan import Plan
from tilewright.tuning.database import Database, Decision
from tilewright.tuning.subprograms import Setting, Subprogram, list_subprograms
from tilewright.tuning.substitute import substitute
from tilewright.worker.process import Worker

# A compilation does not wait for long: it can do without.
_WAIT_SECONDS = 2.0
_ABOUT_THE_PLAN = ("key", "name", "target", "plan")


@dataclass(frozen=True)
class TunedPlan:
    """A plan with decisions in it, and for every kernel what was measured."""

    plan: Plan
    decisions: Mapping[str, tuple[Decision, ...]]
    """By kernel: of its parts, or of the subprogram that it is a piece of."""

    def note(self, report: dict[str, Any]) -> None:
        """Adds what was measured to the compiler's report."""
        for kernel in report.get("kernels", ()):
            if decisions := self.decisions.get(kernel["name"]):
                kernel["measured"] = [
                    {name: value for name, value in asdict(d).items() if name not in _ABOUT_THE_PLAN}
                    for d in decisions
                ]


def tuned_plan(
    text: str, setting: Setting, *, database: Path, worker: Worker, folder: Path
) -> tuple[TunedPlan | None, str]:
    """The plan of a module with what was measured before, if anything was, and a note where the database is no help."""
    if not database.is_file():
        return None, ""
    try:
        with Database(database, wait_seconds=_WAIT_SECONDS) as known:
            if not known.holds(setting.target.name):
                return None, ""
            planned, setting = list_subprograms(text, setting, worker=worker, folder=folder)
            found = [(s, known.decision(setting.key(s.form))) for s in planned.subprograms]
    except TuningError as error:
        return None, f"compiled without measurements: {error}"
    hits = [(subprogram, decision) for subprogram, decision in found if decision is not None]
    if planned.plan is None or not hits:
        return None, ""
    plan = substitute(planned.plan, [(subprogram, decision.plan) for subprogram, decision in hits])
    return TunedPlan(plan, _by_kernel(planned.plan, plan, hits)), ""


def _by_kernel(
    before: Plan, after: Plan, hits: list[tuple[Subprogram, Decision]]
) -> dict[str, tuple[Decision, ...]]:
    """Kernels are told by their ops: each op of a measured subprogram leads to the kernel that it is in now."""
    kernel_of = {op.id: kernel.name for kernel in after.kernels for part in kernel.groups for op in part.ops}
    decisions: dict[str, dict[str, Decision]] = {}
    for subprogram, decision in hits:
        kernel = before.kernels[subprogram.kernel]
        if len(kernel.groups) > 1 and not decision.is_fused:
            continue  # It stays in one kernel with its neighbours.
        for op in kernel.groups[subprogram.part].ops:
            if op.id in kernel_of:
                decisions.setdefault(kernel_of[op.id], {})[decision.key] = decision
    return {name: tuple(of.values()) for name, of in decisions.items()}
