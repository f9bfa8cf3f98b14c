"""Contests of forms: choices of other algebra for ops, each measured against the opposite choice.

A form gives another graph, so both choices are planned, and the subprograms that only one of the two plans has are
timed in turn, each as often as it occurs. The opposite choice is taken if it is significantly faster; later contests
start from what was taken. Offers that differ in nothing but their number, as in repeated layers, are decided together.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.records.encoding import to_json
from tilewright.records.plan import FormChoice, Plan
from tilewright.tuning.contest import TURNS, Say, Session, by_hash
from tilewright.tuning.database import Decision, RegionProof
from tilewright.tuning.deciding import decide
from tilewright.tuning.subprograms import Planned
from tilewright.tuning.timer import Build, TimingError

_PRESENT, _OPPOSITE = "present", "opposite"


@dataclass(frozen=True, kw_only=True)
class TunedForm:
    """Equal offers of a form, with the decision between the rule's choice and the opposite one."""

    decision: Decision
    count: int
    """Number of equal offers."""
    is_new: bool
    """True if it was measured now, False if the decision was already known."""
    subprograms: frozenset[str]
    """Subprograms of the choice that won, which the other plan does not have."""

    @property
    def is_changed(self) -> bool:
        """True if the opposite of the rule's choice won."""
        return self.decision.ratio < 1


@dataclass(frozen=True, kw_only=True)
class _Alternative:
    """The opposite choice for equal offers, planned, and what it changes."""

    name: str
    count: int
    planned: Planned
    removed: Counter[str]
    """Subprograms that only the present plan has."""
    added: Counter[str]
    """Subprograms that only this plan has."""


def tune_forms(
    session: Session,
    planned: Planned,
    *,
    with_forms: Callable[[Plan], Planned | None],
    say: Callable[[int, int, str], Say],
) -> tuple[Planned, tuple[TunedForm, ...]]:
    """Measures the opposite of each choice of a form, and returns the program with the choices that won.

    `with_forms` plans the program with the forms that a plan states, or returns None if a pass refuses them.
    """
    assert planned.plan is not None
    tuned: list[TunedForm] = []
    requested: list[FormChoice] = []
    offers = _offers(planned.plan)
    for number, key in enumerate(offers, start=1):
        assert planned.plan is not None
        # A form that was taken before may have removed the offer, or given it another number.
        present = _offers(planned.plan).get(key, [])
        opposite = [replace(choice, taken=not choice.taken, parameters={}) for choice in present]
        asked = [*requested, *opposite]
        other = with_forms(replace(planned.plan.forms_only(), forms=asked)) if opposite else None
        if other is None:
            continue
        name = _name(opposite[0])
        alternative = _alternative(planned, other, asked, name=name, count=len(opposite))
        if alternative is None:
            continue
        one = _tune(session, planned, alternative, say(number, len(offers), name))
        if one is None:
            continue
        tuned.append(one)
        if one.is_changed:
            planned, requested = other, asked
    return planned, tuple(tuned)


def proofs_of(tuned: Sequence[TunedForm], planned: Planned) -> tuple[RegionProof, ...]:
    """Returns the measurements of forms with the ops of the plan whose kernels they decided."""
    assert planned.plan is not None
    proofs = []
    for one in tuned:
        places = [(s.kernel, s.part) for s in planned.subprograms if s.form in one.subprograms]
        ops = (op.id for kernel, part in places for op in planned.plan.kernels[kernel].groups[part].ops)
        proofs.append(RegionProof(ops=tuple(sorted(ops)), key=one.decision.key))
    return tuple(proof for proof in proofs if proof.ops)


def _offers(plan: Plan) -> dict[str, list[FormChoice]]:
    """Returns the choices of a plan, those together that differ in their number alone."""
    offers: dict[str, list[FormChoice]] = {}
    for choice in plan.forms:
        offers.setdefault(json.dumps(to_json(replace(choice, number=0)), sort_keys=True), []).append(choice)
    return offers


def _name(choice: FormChoice) -> str:
    return f"{choice.form} {'taken' if choice.taken else 'declined'}"


def _alternative(
    planned: Planned, other: Planned, asked: Sequence[FormChoice], *, name: str, count: int
) -> _Alternative | None:
    """Returns None if the other plan does not have all choices, if no kernels stand against each other, or if more is
    left to IREE, which no contest times."""
    if other.plan is None or _dispatches(other) > _dispatches(planned):
        return None
    made = {(choice.form, choice.number, choice.taken) for choice in other.plan.forms}
    if not made.issuperset((choice.form, choice.number, choice.taken) for choice in asked):
        return None
    before, after = (Counter(s.form for s in one.subprograms) for one in (planned, other))
    removed, added = before - after, after - before
    if not removed or not added:
        return None
    return _Alternative(name=name, count=count, planned=other, removed=removed, added=added)


def _dispatches(planned: Planned) -> int:
    return sum(op.is_dispatch for op in planned.report.left_to_iree)


def _tune(session: Session, planned: Planned, alternative: _Alternative, say: Say) -> TunedForm | None:
    """Returns None if nothing could be measured."""
    sides = json.dumps([sorted(side.elements()) for side in (alternative.removed, alternative.added)])
    key = session.setting.key(sides, against=alternative.name)
    known = session.known(key)
    decision = known or _measure(session, planned, alternative, key, say)
    if decision is None:
        return None
    won = alternative.added if decision.ratio < 1 else alternative.removed
    return TunedForm(
        decision=decision, count=alternative.count, is_new=known is None, subprograms=frozenset(won)
    )


def _measure(
    session: Session, planned: Planned, alternative: _Alternative, key: str, say: Say
) -> Decision | None:
    assert planned.plan is not None and alternative.planned.plan is not None
    sides = {_PRESENT: alternative.removed, _OPPOSITE: alternative.added}
    forms = sorted({form for side in sides.values() for form in side})
    builds: dict[str, Build] = {}
    for done, form in enumerate(forms):
        say("compiling", done, len(forms))
        build = _build(session, form)
        if build is None:
            return None
        builds[form] = build
    samples: dict[str, list[float]] = {name: [] for name in sides}
    with session.timer:
        for turn in range(TURNS):
            say("timing", turn, TURNS)
            try:
                for name, side in sides.items():
                    samples[name].append(_seconds(session, side, builds))
            except TimingError:
                return None
    plans = {_PRESENT: planned.plan.forms_only(), _OPPOSITE: alternative.planned.plan.forms_only()}
    decision = decide(
        samples,
        plans,
        unmeasured=_PRESENT,
        unfused=(),
        key=key,
        name=alternative.name,
        target=session.setting.target.name,
        candidates=len(plans),
        machine=session.machine,
        measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        region_ops=_ops(planned, alternative.removed),
        form=alternative.name,
    )
    session.database.keep_decision(decision)
    return decision


def _build(session: Session, form: str) -> Build | None:
    """Compiles the planner's own plan of a subprogram; returns None if that fails."""
    plans = by_hash(session.compilers.candidates(form, session.setting, 1)[:1])
    results = session.compilers.build(plans, form, session.setting, session.setting.key(form), lambda: None)
    return next((build for _, build in results if isinstance(build, Build)), None)


def _seconds(session: Session, side: Mapping[str, int], builds: Mapping[str, Build]) -> float:
    return sum(count * session.timer.seconds(builds[form]) for form, count in side.items())


def _ops(planned: Planned, side: Counter[str]) -> int:
    """Returns the number of ops in the subprograms of the present plan that the opposite choice changes."""
    assert planned.plan is not None
    groups = [planned.plan.kernels[s.kernel].groups[s.part] for s in planned.subprograms if s.form in side]
    return sum(len(group.ops) for group in groups)
