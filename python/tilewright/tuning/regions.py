"""Contests of whole regions, in which kernels may be enlarged, split and joined across the borders of a plan's own.

The plans of all policies, and the best that the search finds, differ from the planner's own in some regions of the
program. The kernels that each plan has there are timed against those of the planner, and against a kernel for each op.
The kernels that win replace the planner's, the largest saving first. Regions that overlap one that was replaced stay.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tilewright.records.plan import Plan
from tilewright.tuning.contest import Contest, Say, Session, by_hash, is_unfused
from tilewright.tuning.database import Decision, ProgramDecision, RegionProof
from tilewright.tuning.subprograms import Planned, Region
from tilewright.tuning.substitute import replace_region

PROGRAM = "program"
"""What the key of a program's decision has instead of a plan."""


@dataclass(frozen=True, kw_only=True)
class TunedRegion:
    """A distinct region of the program, with its decision."""

    decision: Decision
    count: int
    """Number of occurrences in the program."""
    taken: int
    """Number of occurrences whose kernels were replaced."""
    is_new: bool
    """True if it was measured now, False if the decision was already known."""


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """Equal regions of a program, and the decision for them."""

    members: Sequence[Region]
    decision: Decision
    is_new: bool

    @property
    def saving(self) -> float:
        return len(self.members) * (self.decision.unmeasured_seconds - self.decision.seconds)

    @property
    def has_changed(self) -> bool:
        return self.decision.ratio < 1


def tune_regions(
    session: Session,
    planned: Planned,
    regions: Iterable[Region],
    *,
    key: str,
    form_proofs: Sequence[RegionProof],
    is_legal: Callable[[Plan], bool],
    say: Callable[[int, int, str], Say],
) -> tuple[Plan, tuple[TunedRegion, ...]]:
    """Measures all regions, and stores and returns the plan that has the winners' kernels.

    `key` is that of the program's decision, and `form_proofs` are the measurements of forms of the plan. `is_legal`
    says if a plan can be carried out for the program. `say(number, count, name)` returns the function that is told of
    the progress on one region.
    """
    assert planned.plan is not None
    groups: dict[tuple[str, str], list[Region]] = {}
    for region in regions:
        groups.setdefault((region.form, next(iter(by_hash(region.plans)))), []).append(region)
    measured = []
    for number, ((form, base), members) in enumerate(groups.items(), start=1):
        name = _name(planned.plan, members[0])
        plans = by_hash([plan for region in members for plan in region.plans])
        contest = Contest(
            session=session,
            form=form,
            key=session.setting.key(form, against=base),
            name=name,
            plans=plans,
            unfused=frozenset(own for own, plan in plans.items() if is_unfused(plan)),
            say=say(number, len(groups), name),
            region_ops=len(members[0].ops),
        )
        known = session.known(contest.key)
        decision = known or contest.decide()
        if decision is not None:
            measured.append(_Measured(members=members, decision=decision, is_new=known is None))
    plan, taken = _replace(planned.plan, measured, is_legal)
    session.database.keep_program(
        ProgramDecision(
            key=key,
            target=session.setting.target.name,
            plan=plan,
            proofs=(*_proofs(measured, taken), *form_proofs),
            measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
    )
    counts = [sum(region in taken for region in one.members) for one in measured]
    return plan, tuple(
        TunedRegion(decision=one.decision, count=len(one.members), taken=count, is_new=one.is_new)
        for one, count in zip(measured, counts, strict=True)
    )


def _name(plan: Plan, region: Region) -> str:
    """Returns the names of the plan's kernels in a region, for people."""
    ops = set(region.ops)
    names = [kernel.name for kernel in plan.kernels if kernel.groups[0].ops[0].id in ops]
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def _replace(
    plan: Plan, measured: Sequence[_Measured], is_legal: Callable[[Plan], bool]
) -> tuple[Plan, list[Region]]:
    """Returns the plan with the kernels of the winners, and the regions that were replaced."""
    taken: list[Region] = []
    changed: set[int] = set()
    for one in sorted((one for one in measured if one.has_changed), key=lambda one: -one.saving):
        trial, own = plan, []
        ops = set(changed)
        for region in one.members:
            if ops.isdisjoint(region.ops) and (
                next_plan := replace_region(trial, region.ops, one.decision.plan)
            ):
                trial = next_plan
                own.append(region)
                ops |= set(region.ops)
        if own and is_legal(trial):
            plan, changed = trial, ops
            taken += own
    return plan, taken


def _proofs(measured: Sequence[_Measured], taken: Sequence[Region]) -> tuple[RegionProof, ...]:
    """Returns the measurements of the regions that were replaced, then those of regions in which the planner's kernels
    won, small regions first."""
    changed = {op for region in taken for op in region.ops}
    pairs = [(region, one) for one in measured for region in one.members]
    won = [(region, one) for region, one in pairs if region in taken]
    stayed = [
        (region, one) for region, one in pairs if not one.has_changed and changed.isdisjoint(region.ops)
    ]
    stayed.sort(key=lambda pair: len(pair[0].ops))
    return tuple(RegionProof(ops=region.ops, key=one.decision.key) for region, one in [*won, *stayed])
