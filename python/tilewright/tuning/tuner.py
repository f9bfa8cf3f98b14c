"""Times plans of a program on this machine and writes the best to the database.

There are three rounds of contests. The first is about forms: each choice against its opposite (`forms`). The second is
about regions: parts of the program for which the plans of the search have different kernels (`regions`). The third is
about every distinct subprogram of the plan that won (`contest`): its tiles, its scopes, and whether it is one kernel.
Candidates of the latter two are compiled in parallel and then timed one after another, while nothing else of ours runs.
First, each is timed alone for a few bursts, and the result is stored at once. Then the fastest few and the unmeasured
plan take turns, and the winner is a plan that is significantly faster than the unmeasured one. So a decision is never
worse than none, and neither fusing nor not fusing is assumed to be better.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tilewright.errors import CompileTimeoutError, PassError, ProgramError, TuningError, temporary_files
from tilewright.frontends import Model, import_model
from tilewright.frontends.triangles import mark_triangles
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.flags import iree_flags as flags_for
from tilewright.iree.versions import check_iree
from tilewright.records.options import NumericsMode
from tilewright.records.plan import Plan
from tilewright.records.targets import Target, TargetChoice, resolve_targets
from tilewright.records.threads import Threads, choose_threads, thread_choices
from tilewright.runtime.cuda import CudaDriver
from tilewright.runtime.processor import missing_features
from tilewright.system.cores import available_cores
from tilewright.system.deadline import Deadline, checked_timeout
from tilewright.system.tuning_path import default_path
from tilewright.system.workfolder import WorkFolder
from tilewright.tuning.contest import Compilers, Contest, Say, Session, by_hash, this_machine
from tilewright.tuning.database import Decision, open_for_tuning
from tilewright.tuning.forms import TunedForm, proofs_of, tune_forms
from tilewright.tuning.regions import PROGRAM, TunedRegion, tune_regions
from tilewright.tuning.subprograms import (
    Planned,
    Region,
    Setting,
    Subprogram,
    list_regions,
    list_subprograms,
)
from tilewright.tuning.timer import ProcessTimer, Timer
from tilewright.worker.process import Worker

CANDIDATES = 20
_PLANS_OF_A_REGION = 5


@dataclass(frozen=True, kw_only=True)
class Step:
    """Progress of a tuning."""

    subprogram: int
    """Number of the form, region or subprogram, from 1."""
    subprograms: int
    """Number of all that are measured in this round."""
    name: str
    doing: str
    done: int = 0
    of: int = 0


Progress = Callable[[Step], None]


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A distinct subprogram of the program, with its decision."""

    decision: Decision
    count: int
    """Number of occurrences in the program."""
    is_new: bool
    """True if it was measured now, False if the decision was already known."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Results for a program's subprograms."""

    forms: tuple[TunedForm, ...]
    """Choices of forms that were measured against their opposites."""
    regions: tuple[TunedRegion, ...]
    """Regions in which the kernels of several plans were measured. Some are parts of others."""
    subprograms: tuple[Tuned, ...]
    """Subprograms of the plan that won the regions."""
    database: Path
    threads: int
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds of all kernels of the program, as tuned."""
        return sum(tuned.count * tuned.decision.seconds for tuned in self.subprograms)

    @property
    def unmeasured_seconds(self) -> float:
        """Seconds of all kernels without tuning."""
        saved = sum(form.decision.seconds * (1 / form.decision.ratio - 1) for form in self.forms)
        saved += sum(r.taken * r.decision.seconds * (1 / r.decision.ratio - 1) for r in self.regions)
        return saved + sum(t.count * t.decision.seconds / t.decision.ratio for t in self.subprograms)


def tune(
    model: Model,
    target: TargetChoice = "cpu",
    *,
    threads: Threads | None = None,
    numerics: NumericsMode = "default",
    database: str | os.PathLike[str] | None = None,
    candidates: int = CANDIDATES,
    jobs: int | None = None,
    iree_flags: Sequence[str] = (),
    entry: str | None = None,
    timeout: float | None = None,
    timer: Timer | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Measures plans of a model's subprograms on this machine, for later compilations to use.

    Arguments:
        model, target, threads, numerics, iree_flags: Same as for `tilewright.compile`. The decisions apply to
            compilations with the same target, threads and numerics.
        database: File that stores the decisions; by default the user's own, which `compile` reads.
        candidates: Maximum number of plans to time for a subprogram.
        jobs: Number of processes that plan and compile; by default one per core.
        entry: Name of the function to compile, for MLIR with several functions.
        timeout: Seconds for planning the program, and for compiling each plan. A plan that takes longer is left out; a
            program that takes longer ends the tuning with `CompileTimeoutError`. By default there is no limit.
        timer: Timer to use instead of this machine's clock.
        progress: Function that is called after every step.

    Raises:
        TuningError: This machine cannot run the target's code, or the database cannot be used.
    """
    check_iree()
    timeout = checked_timeout(timeout)
    choices = thread_choices(threads or available_cores())
    targets = resolve_targets(target, threads=choices[-1])
    on_gpu = not targets[0].kind.in_process
    machine = _check_gpu(targets[0]) if on_gpu and timer is None else this_machine()
    if timer is None and (missing := missing_features(targets[0].features)):
        raise TuningError(
            f"this machine lacks {', '.join(missing)} of target {targets[0].name}",
            hint="tune on a machine that can run the program",
        )
    kept, note = open_for_tuning(Path(database) if database is not None else default_path())
    with kept, temporary_files(), WorkFolder("tune") as folder, ExitStack() as stack:
        program = plan_program(model, target, targets, choices, numerics, iree_flags, folder, timeout)
        session = Session(
            database=kept,
            setting=program.setting,
            folder=folder,
            timer=timer or ProcessTimer(folder, threads=program.setting.target.cores, on_gpu=on_gpu),
            machine=machine,
            compilers=Compilers(folder, jobs=jobs or available_cores(), timeout=timeout, stack=stack),
        )
        tell = progress or (lambda step: None)
        forms: tuple[TunedForm, ...] = ()
        regions: tuple[TunedRegion, ...] = ()
        planned = program.planned
        if planned.plan is not None:
            replan = partial(program.with_plan, folder=folder, timeout=timeout)
            say = partial(_say, tell)
            if candidates > 1:
                planned, forms = tune_forms(session, planned, with_forms=replan, say=say)
            assert planned.plan is not None
            found = program.regions(
                planned.plan, count=min(candidates, _PLANS_OF_A_REGION), folder=folder, timeout=timeout
            )
            plan, regions = tune_regions(
                session,
                planned,
                found,
                key=program.setting.key(program.planned.form, against=PROGRAM),
                form_proofs=proofs_of(forms, planned),
                is_legal=lambda plan: replan(plan) is not None,
                say=say,
            )
            planned = replan(plan) or planned
        return Tuning(
            forms=forms,
            regions=regions,
            subprograms=_tune_subprograms(session, planned, candidates, tell),
            database=kept.path,
            threads=program.setting.target.cores,
            notes=(note,) if note else (),
        )


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to tune, at IREE's preprocessing phase."""

    text: str
    planned: Planned
    setting: Setting

    def regions(self, plan: Plan, *, count: int, folder: Path, timeout: float | None) -> tuple[Region, ...]:
        """Returns the regions for which plans differ, each with at most `count` plans; none for a single plan. The
        program has the forms of the given plan."""
        if count < 2:
            return ()
        with Worker(folder, deadline=Deadline(timeout)) as worker:
            return list_regions(
                self.text, self.setting, count=count, forms=plan, worker=worker, folder=folder
            )

    def with_plan(self, plan: Plan, *, folder: Path, timeout: float | None) -> Planned | None:
        """Returns the program with another plan, or with the forms of a plan that states nothing else; None if that is
        illegal."""
        with Worker(folder, deadline=Deadline(timeout)) as worker:
            try:
                return list_subprograms(self.text, self.setting, worker=worker, folder=folder, plan=plan)[0]
            except (PassError, CompileTimeoutError):
                return None


def plan_program(
    model: Model,
    choice: TargetChoice,
    targets: Sequence[Target],
    choices: Sequence[int],
    numerics: NumericsMode,
    extra_flags: Sequence[str],
    folder: Path,
    timeout: float | None,
) -> Program:
    """Plans the program as `compile` would, for the number of threads that `compile` would choose."""
    with Worker(folder, deadline=Deadline(timeout)) as worker:
        iree = IreeCompiler(worker)
        imported = import_model(model, compiler=iree, directory=folder)
        flags = flags_for(targets[-1], host=choice == "cpu", extra=extra_flags)
        front = iree.compile_to(
            imported.source,
            "preprocessing",
            flags=flags,
            name=imported.name,
            is_static_onnx=imported.is_static_onnx,
        )
        front = mark_triangles(front, imported.parameters)
        setting = Setting(target=targets[0], numerics=numerics)
        planned, setting = list_subprograms(front, setting, worker=worker, folder=folder)
        threads = choose_threads(planned.report, targets[0], choices)
        if threads < choices[-1]:
            setting = Setting(target=resolve_targets(choice, threads=threads)[0], numerics=numerics)
            planned, setting = list_subprograms(front, setting, worker=worker, folder=folder)
    return Program(text=front, planned=planned, setting=setting)


def _tune_subprograms(
    session: Session, planned: Planned, candidates: int, progress: Progress
) -> tuple[Tuned, ...]:
    groups: dict[str, list[Subprogram]] = {}
    for subprogram in planned.subprograms:
        groups.setdefault(subprogram.form, []).append(subprogram)
    tuned = []
    for number, (form, members) in enumerate(groups.items(), start=1):
        assert planned.plan is not None
        name = planned.plan.kernels[members[0].kernel].name
        key = session.setting.key(form)
        known = session.known(key)
        decision = known
        if decision is None:
            say = _say(progress, number, len(groups), name)
            say("planning", 0, 0)
            plans = by_hash(session.compilers.candidates(form, session.setting, candidates))
            cut = frozenset(own for own, plan in plans.items() if len(plan.kernels) > 1)
            contest = Contest(
                session=session, form=form, key=key, name=name, plans=plans, unfused=cut, say=say
            )
            decision = contest.decide()
        if decision is not None:
            tuned.append(Tuned(decision=decision, count=len(members), is_new=known is None))
    return tuple(tuned)


def _check_gpu(target: Target) -> str:
    """Returns the name of this machine's GPU. Raises `TuningError` if it does not run code for the target."""
    hint = "make a bundle for a machine with it (--bundle); until it is tuned, plans follow predictions"
    try:
        gpu = CudaDriver().describe()
    except ProgramError as error:
        raise TuningError(
            f"{target.name} is a GPU; its kernels are timed on a machine with it, and here {error.message}",
            hint=hint,
        ) from None
    found = re.fullmatch(r"sm_(\d+)(\d)a?", target.cpu)
    if found is None or gpu.capability < (int(found[1]), int(found[2])):
        has = ".".join(map(str, gpu.capability))
        raise TuningError(
            f"this machine's {gpu.name} has compute capability {has}, and {target.name} is {target.cpu}",
            hint=hint,
        )
    return f"{gpu.name}, driver {gpu.driver}"


def _say(progress: Progress, number: int, count: int, name: str) -> Say:
    """Returns the function that is told of the progress on one form, region or subprogram."""

    def say(doing: str, done: int, of: int) -> None:
        progress(Step(subprogram=number, subprograms=count, name=name, doing=doing, done=done, of=of))

    return say
