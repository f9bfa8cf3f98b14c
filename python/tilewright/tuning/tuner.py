"""Times plans of every distinct subprogram on this machine and writes the best to the database.

A subprogram's candidates are compiled in parallel and then timed one after another, while nothing else of ours runs.
First, each is timed alone for a few bursts, and the result is stored at once. Then the fastest few and the unmeasured
plan take turns, and the winner is a plan that is significantly faster than the unmeasured one. So a decision is never
worse than none, and neither fusing nor not fusing is assumed to be better.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tilewright.errors import CompileTimeoutError, PassError, ProgramError, TuningError, temporary_files
from tilewright.frontends import Model, import_model
from tilewright.frontends.triangles import mark_triangles
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.flags import iree_flags as flags_for
from tilewright.iree.versions import check_iree
from tilewright.pipelines import pass_text, pipeline
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
from tilewright.tuning.database import (
    DamagedError,
    Database,
    Decision,
    Measurement,
    open_for_tuning,
)
from tilewright.tuning.deciding import decide
from tilewright.tuning.service import run_passes
from tilewright.tuning.subprograms import (
    Planned,
    Setting,
    Subprogram,
    cache_bytes,
    list_candidates,
    list_subprograms,
    write_target,
)
from tilewright.tuning.timer import Build, ProcessTimer, Timer, TimingError
from tilewright.worker.process import Worker

CANDIDATES = 20
BURSTS = 4
"""Bursts per candidate before the final."""
_HOPELESS = 2.0
"""A candidate whose first burst takes this many times the fastest candidate's time gets no further bursts."""
_FINALISTS = 3
_TURNS = 25


@dataclass(frozen=True, kw_only=True)
class Step:
    """Progress of a tuning."""

    subprogram: int
    subprograms: int
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

    subprograms: tuple[Tuned, ...]
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
        return sum(tuned.count * tuned.decision.seconds / tuned.decision.ratio for tuned in self.subprograms)


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
    on_gpu = targets[0].backend == "cuda"
    machine = _check_gpu(targets[0]) if on_gpu and timer is None else _machine()
    if timer is None and (missing := missing_features(targets[0].features)):
        raise TuningError(
            f"this machine lacks {', '.join(missing)} of target {targets[0].name}",
            hint="tune on a machine that can run the program",
        )
    kept, note = open_for_tuning(Path(database) if database is not None else default_path())
    with kept, temporary_files(), WorkFolder("tune") as folder:
        planned, setting = plan_program(
            model, target, targets, choices, numerics, iree_flags, folder, timeout
        )
        run = _Run(
            database=kept,
            setting=setting,
            folder=folder,
            count=candidates,
            jobs=jobs or available_cores(),
            timeout=timeout,
            timer=timer or ProcessTimer(folder, threads=setting.target.cores, on_gpu=on_gpu),
            # A GPU's clock counts the launches, a processor's only the kernels.
            launch_seconds=0.0 if on_gpu else setting.target.launch_seconds,
            progress=progress or (lambda step: None),
            machine=machine,
        )
        return Tuning(
            subprograms=run.tune(planned),
            database=kept.path,
            threads=setting.target.cores,
            notes=(note,) if note else (),
        )


def plan_program(
    model: Model,
    choice: TargetChoice,
    targets: Sequence[Target],
    choices: Sequence[int],
    numerics: NumericsMode,
    extra_flags: Sequence[str],
    folder: Path,
    timeout: float | None,
) -> tuple[Planned, Setting]:
    """Plans the program as `compile` would, for the number of threads that `compile` would choose."""
    with Worker(folder, deadline=Deadline(timeout)) as worker:
        iree = IreeCompiler(worker)
        imported = import_model(model, compiler=iree, directory=folder)
        flags = flags_for(targets[-1], host=choice == "cpu", extra=extra_flags)
        front = iree.compile_to(imported.source, "preprocessing", flags=flags, name=imported.name)
        front = mark_triangles(front, imported.parameters)
        setting = Setting(target=targets[0], numerics=numerics)
        planned, setting = list_subprograms(front, setting, worker=worker, folder=folder)
        threads = choose_threads(planned.report, targets[0], choices)
        if threads < choices[-1]:
            setting = Setting(target=resolve_targets(choice, threads=threads)[0], numerics=numerics)
            planned, setting = list_subprograms(front, setting, worker=worker, folder=folder)
    return planned, setting


@dataclass(frozen=True, kw_only=True)
class _Run:
    """State of the tuning of one program."""

    database: Database
    setting: Setting
    folder: Path
    count: int
    jobs: int
    timeout: float | None
    timer: Timer
    launch_seconds: float
    """Seconds that a launch costs besides what the timer counts."""
    progress: Progress
    machine: str

    def tune(self, planned: Planned) -> tuple[Tuned, ...]:
        groups: dict[str, list[Subprogram]] = {}
        for subprogram in planned.subprograms:
            groups.setdefault(subprogram.form, []).append(subprogram)
        tuned = []
        with ExitStack() as stack:
            compilers = _Compilers(self, stack)
            for index, (form, members) in enumerate(groups.items()):
                assert planned.plan is not None
                name = planned.plan.kernels[members[0].kernel].name
                one = _One(self, form, name, index, len(groups), compilers)
                # The database is read again each time, because another process may have decided it in the meantime.
                known = self._known(one.key)
                decision = known or one.decide()
                if decision is not None:
                    tuned.append(Tuned(decision=decision, count=len(members), is_new=known is None))
        return tuple(tuned)

    def _known(self, key: str) -> Decision | None:
        try:
            return self.database.decision(key)
        except DamagedError:
            return None  # A new decision will replace the damaged row.


class _One:
    """Tuning of one subprogram."""

    def __init__(
        self, run: _Run, form: str, name: str, index: int, total: int, compilers: _Compilers
    ) -> None:
        self._run, self._form, self._name, self._compilers = run, form, name, compilers
        self._index, self._total = index, total
        self.key = run.setting.key(form)

    def decide(self) -> Decision | None:
        """Decides for a plan; returns None if nothing could be measured, so that the plan stays as it is."""
        self._say("planning")
        plans = {plan_hash(plan): plan for plan in self._compilers.candidates(self._form)}
        if not plans:
            return None
        builds = self._build(plans)
        with self._run.timer:
            self._measure(builds)
            return self._final(plans, builds)

    def _build(self, plans: Mapping[str, Plan]) -> dict[str, Build]:
        """Compiles the plans that have no time yet and those that will be in the final."""
        known = self._run.database.measurements(self.key)
        finalists = self._finalists(plans, known)
        wanted = [name for name in plans if name not in known or name in finalists]
        done = 0

        def finished() -> None:
            nonlocal done
            done += 1
            self._say("compiling", done, len(wanted))

        self._say("compiling", 0, len(wanted))
        builds: dict[str, Build] = {}
        for name, result in self._compilers.build({n: plans[n] for n in wanted}, self._form, finished):
            if isinstance(result, Build):
                builds[name] = result
            else:
                self._keep(name, Measurement(seconds=None, problem=result))
        return builds

    def _measure(self, builds: Mapping[str, Build]) -> None:
        known = self._run.database.measurements(self.key)
        missing = [name for name in builds if name not in known]
        quickest = min((m.seconds for m in known.values() if m.seconds), default=math.inf)
        for done, name in enumerate(missing):
            self._say("timing", done, len(missing))
            try:
                seconds = self._bursts(builds[name], quickest)
            except TimingError as error:
                self._keep(name, Measurement(seconds=None, problem=str(error)))
            else:
                quickest = min(quickest, seconds)
                self._keep(name, Measurement(seconds=seconds))

    def _bursts(self, build: Build, quickest: float) -> float:
        """Returns the shortest of a few bursts, because disturbances only make a burst longer."""
        seconds = self._time(build)
        for _ in range(BURSTS - 1):
            if seconds > _HOPELESS * quickest:
                break
            seconds = min(seconds, self._time(build))
        return seconds

    def _final(self, plans: Mapping[str, Plan], builds: dict[str, Build]) -> Decision | None:
        """Times the fastest few and the unmeasured plan in turns."""
        known = self._run.database.measurements(self.key)
        unmeasured = next(iter(plans))
        names = self._finalists(plans, known)
        if unmeasured not in names:
            return None  # The unmeasured plan does not run, so nothing can be compared with it.
        late = {name: plans[name] for name in names if name not in builds}
        for name, result in self._compilers.build(late, self._form, lambda: None):
            if isinstance(result, Build):
                builds[name] = result
        self._say("timing the best", 0, _TURNS)
        samples: dict[str, list[float]] = {name: [] for name in names if name in builds}
        for turn in range(_TURNS):
            for name in list(samples):
                try:
                    samples[name].append(self._time(builds[name]))
                except TimingError as error:
                    self._keep(name, Measurement(seconds=None, problem=str(error)))
                    del samples[name]
            self._say("timing the best", turn + 1, _TURNS)
        if unmeasured not in samples:
            return None
        timed = [name for name in plans if name in known and known[name].seconds is not None]
        decision = decide(
            samples,
            plans,
            unmeasured=unmeasured,
            key=self.key,
            name=self._name,
            target=self._run.setting.target.name,
            candidates=len(timed),
            machine=self._run.machine,
            measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
        self._run.database.keep_decision(decision)
        return decision

    def _time(self, build: Build) -> float:
        """Returns the build's time plus the costs of its launches that the timer leaves out."""
        return self._run.timer.seconds(build) + len(build.launches) * self._run.launch_seconds

    @staticmethod
    def _finalists(plans: Mapping[str, Plan], known: Mapping[str, Measurement]) -> list[str]:
        """Returns the fastest of the timed plans, the fastest of the other kind (fused or not), and the unmeasured
        plan."""
        seconds = {name: known[name].seconds for name in plans if name in known and known[name].seconds}
        order = sorted(seconds, key=lambda name: seconds[name] or 0.0)
        fused = [name for name in order if len(plans[name].kernels) == 1]
        cut = [name for name in order if len(plans[name].kernels) > 1]
        unmeasured = [name for name in list(plans)[:1] if name in seconds]
        return list(dict.fromkeys([*unmeasured, *order[:_FINALISTS], *fused[:1], *cut[:1]]))

    def _keep(self, candidate: str, measurement: Measurement) -> None:
        self._run.database.keep_measurement(self.key, candidate, measurement)

    def _say(self, doing: str, done: int = 0, of: int = 0) -> None:
        self._run.progress(
            Step(
                subprogram=self._index + 1,
                subprograms=self._total,
                name=self._name,
                doing=doing,
                done=done,
                of=of,
            )
        )


class _Compilers:
    """Worker processes, each with a folder; a task takes a free one."""

    def __init__(self, run: _Run, stack: ExitStack) -> None:
        self._run = run
        self._free: SimpleQueue[tuple[Worker, Path]] = SimpleQueue()
        for job in range(run.jobs):
            own = run.folder / f"job{job}"
            own.mkdir()
            self._free.put((stack.enter_context(Worker(own)), own))
        # This is entered last, so that it ends before the workers that its threads use.
        self._threads = stack.enter_context(ThreadPoolExecutor(max_workers=run.jobs))

    def candidates(self, form: str) -> Sequence[Plan]:
        worker, folder = self._free.get()
        worker.deadline = Deadline(self._run.timeout)
        try:
            return list_candidates(
                form, self._run.setting, count=self._run.count, worker=worker, folder=folder
            )
        except (PassError, CompileTimeoutError):
            return []  # A subprogram that cannot be planned alone as in the whole program keeps its plan.
        finally:
            self._free.put((worker, folder))

    def build(
        self, plans: Mapping[str, Plan], form: str, finished: Callable[[], None]
    ) -> list[tuple[str, Build | str]]:
        """Compiles every plan; returns its build, or the reason why there is none."""

        def task(item: tuple[str, Plan]) -> tuple[str, Build | str]:
            worker, own = self._free.get()
            worker.deadline = Deadline(self._run.timeout)
            try:
                return item[0], self._compile(item[0], item[1], form, worker)
            except (PassError, CompileTimeoutError) as error:
                return item[0], error.message
            finally:
                self._free.put((worker, own))
                finished()

        return list(self._threads.map(task, plans.items()))

    def _compile(self, name: str, plan: Plan, form: str, worker: Worker) -> Build:
        setting = self._run.setting
        folder = self._run.folder / f"{setting.key(form)[:16]}-{name[:16]}"
        folder.mkdir(exist_ok=True)
        plan.save(folder / "plan.json")
        launches = run_passes(worker, form, compiling(setting, folder))
        evicts = cache_bytes(setting.target) if setting.streams_weights else 0
        return Build(folder=folder, launches=launches, candidate=name, evicts_bytes=evicts)


def compiling(setting: Setting, folder: Path) -> str:
    """Returns the pipeline that compiles the plan in a folder to kernels there, as `Build` has them."""
    target = str(write_target(setting.target, folder))
    options = {"target": target, "numerics": setting.numerics, "plan-in": str(folder / "plan.json")}
    if setting.target.backend == "cpu":
        files = {"object-path": str(folder / "kernels.o"), "manifest": str(folder / "manifest.json")}
        return pipeline(pass_text("tilewright-cpu-subprogram", {**options, **files}))
    return pipeline(
        pass_text("tilewright-cuda-subprogram", options),
        pass_text("tile-print-launches", {"output": str(folder / "launches.json")}),
        pass_text("tile-emit-ptx", {"target": target, "path": str(folder / "kernels.ptx")}),
    )


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


def plan_hash(plan: Plan) -> str:
    """Returns a hash that is equal for plans that are carried out alike."""
    return hashlib.sha256(json.dumps(plan.to_json(), sort_keys=True).encode()).hexdigest()


def _machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
