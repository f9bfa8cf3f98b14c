"""Contests of plans that compute the same: all are compiled and timed, and the fastest few take turns with the plan
that is used without measurements."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tilewright.errors import CompileTimeoutError, PassError
from tilewright.pipelines import pass_text, pipeline
from tilewright.records.plan import Plan
from tilewright.system.deadline import Deadline
from tilewright.tuning.database import DamagedError, Database, Decision, Measurement
from tilewright.tuning.deciding import decide
from tilewright.tuning.service import run_passes
from tilewright.tuning.subprograms import (
    Setting,
    cache_bytes,
    list_candidates,
    weight_arguments,
    write_target,
)
from tilewright.tuning.timer import LAUNCHES, Build, Timer, TimingError
from tilewright.worker.process import Worker

BURSTS = 4
"""Bursts per candidate before the final."""
_HOPELESS = 2.0
"""A candidate whose first burst takes this many times the fastest candidate's time gets no further bursts."""
_FINALISTS = 3
TURNS = 25
"""How often each plan of a final is timed."""

Say = Callable[[str, int, int], None]
"""Function that is told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """What all contests of one tuning share."""

    database: Database
    setting: Setting
    folder: Path
    timer: Timer
    machine: str
    """The processor or GPU that the timer is for."""
    compilers: Compilers

    def known(self, key: str) -> Decision | None:
        """Returns the decision of a contest that has taken place. The database is read each time, because another
        process may have decided it in the meantime."""
        try:
            return self.database.decision(key)
        except DamagedError:
            return None  # A new decision will replace the damaged row.


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Plans of one function, the one that is used without measurements first."""

    session: Session
    form: str
    key: str
    name: str
    plans: Mapping[str, Plan]
    """Plans by their hash (`by_hash`)."""
    unfused: frozenset[str]
    """Plans that the others must beat as fusions. The fastest of them takes part in the final."""
    say: Say
    region_ops: int = 0
    """Number of ops if the function is a region of several kernels."""

    def decide(self) -> Decision | None:
        """Decides for a plan; returns None if nothing could be measured, so that the plan stays as it is."""
        if not self.plans:
            return None
        builds = self._build()
        with self.session.timer:
            self._measure(builds)
            return self._final(builds)

    def _build(self) -> dict[str, Build]:
        """Compiles the plans that have no time yet and those that will be in the final."""
        known = self.session.database.measurements(self.key)
        finalists = self._finalists(known)
        wanted = [name for name in self.plans if name not in known or name in finalists]
        done = 0

        def finished() -> None:
            nonlocal done
            done += 1
            self.say("compiling", done, len(wanted))

        self.say("compiling", 0, len(wanted))
        builds: dict[str, Build] = {}
        for name, result in self._compile(wanted, finished):
            if isinstance(result, Build):
                builds[name] = result
            else:
                self._keep(name, Measurement(seconds=None, problem=result))
        return builds

    def _compile(self, names: Sequence[str], finished: Callable[[], None]) -> list[tuple[str, Build | str]]:
        plans = {name: self.plans[name] for name in names}
        return self.session.compilers.build(plans, self.form, self.session.setting, self.key, finished)

    def _measure(self, builds: Mapping[str, Build]) -> None:
        known = self.session.database.measurements(self.key)
        missing = [name for name in builds if name not in known]
        quickest = min((m.seconds for m in known.values() if m.seconds), default=math.inf)
        for done, name in enumerate(missing):
            self.say("timing", done, len(missing))
            try:
                seconds = self._bursts(builds[name], quickest)
            except TimingError as error:
                self._keep(name, Measurement(seconds=None, problem=str(error)))
            else:
                quickest = min(quickest, seconds)
                self._keep(name, Measurement(seconds=seconds))

    def _bursts(self, build: Build, quickest: float) -> float:
        """Returns the shortest of a few bursts, because disturbances only make a burst longer."""
        seconds = self.session.timer.seconds(build)
        for _ in range(BURSTS - 1):
            if seconds > _HOPELESS * quickest:
                break
            seconds = min(seconds, self.session.timer.seconds(build))
        return seconds

    def _final(self, builds: dict[str, Build]) -> Decision | None:
        """Times the fastest few and the unmeasured plan in turns."""
        known = self.session.database.measurements(self.key)
        unmeasured = next(iter(self.plans))
        names = self._finalists(known)
        if unmeasured not in names:
            return None  # The unmeasured plan does not run, so nothing can be compared with it.
        for name, result in self._compile([name for name in names if name not in builds], lambda: None):
            if isinstance(result, Build):
                builds[name] = result
        self.say("timing the best", 0, TURNS)
        samples: dict[str, list[float]] = {name: [] for name in names if name in builds}
        for turn in range(TURNS):
            for name in list(samples):
                try:
                    samples[name].append(self.session.timer.seconds(builds[name]))
                except TimingError as error:
                    self._keep(name, Measurement(seconds=None, problem=str(error)))
                    del samples[name]
            self.say("timing the best", turn + 1, TURNS)
        if unmeasured not in samples:
            return None
        timed = [name for name in self.plans if name in known and known[name].seconds is not None]
        decision = decide(
            samples,
            self.plans,
            unmeasured=unmeasured,
            unfused=self.unfused,
            key=self.key,
            name=self.name,
            target=self.session.setting.target.name,
            candidates=len(timed),
            machine=self.session.machine,
            measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            region_ops=self.region_ops,
        )
        self.session.database.keep_decision(decision)
        return decision

    def _finalists(self, known: Mapping[str, Measurement]) -> list[str]:
        """Returns the unmeasured plan, the fastest of the timed plans, and the fastest of either kind (fused or
        not)."""
        seconds = {name: known[name].seconds for name in self.plans if name in known and known[name].seconds}
        order = sorted(seconds, key=lambda name: seconds[name] or 0.0)
        fused = [name for name in order if name not in self.unfused]
        unfused = [name for name in order if name in self.unfused]
        unmeasured = [name for name in list(self.plans)[:1] if name in seconds]
        return list(dict.fromkeys([*unmeasured, *order[:_FINALISTS], *fused[:1], *unfused[:1]]))

    def _keep(self, candidate: str, measurement: Measurement) -> None:
        self.session.database.keep_measurement(self.key, candidate, measurement)


class Compilers:
    """Worker processes, each with a folder; a task takes a free one."""

    def __init__(self, folder: Path, *, jobs: int, timeout: float | None, stack: ExitStack) -> None:
        self._folder, self._timeout = folder, timeout
        self._free: SimpleQueue[tuple[Worker, Path]] = SimpleQueue()
        for job in range(jobs):
            own = folder / f"job{job}"
            own.mkdir()
            self._free.put((stack.enter_context(Worker(own)), own))
        # This is entered last, so that it ends before the workers that its threads use.
        self._threads = stack.enter_context(ThreadPoolExecutor(max_workers=jobs))

    def candidates(self, form: str, setting: Setting, count: int) -> Sequence[Plan]:
        worker, folder = self._free.get()
        worker.deadline = Deadline(self._timeout)
        try:
            return list_candidates(form, setting, count=count, worker=worker, folder=folder)
        except (PassError, CompileTimeoutError):
            return []  # A subprogram that cannot be planned alone as in the whole program keeps its plan.
        finally:
            self._free.put((worker, folder))

    def build(
        self, plans: Mapping[str, Plan], form: str, setting: Setting, key: str, finished: Callable[[], None]
    ) -> list[tuple[str, Build | str]]:
        """Compiles every plan of a function; returns its build, or the reason why there is none."""

        def task(item: tuple[str, Plan]) -> tuple[str, Build | str]:
            worker, own = self._free.get()
            worker.deadline = Deadline(self._timeout)
            try:
                folder = self._folder / f"{key[:16]}-{item[0][:16]}"
                return item[0], _compile(item[0], item[1], form, setting, worker, folder)
            except (PassError, CompileTimeoutError) as error:
                return item[0], error.message
            finally:
                self._free.put((worker, own))
                finished()

        return list(self._threads.map(task, plans.items()))


def _compile(name: str, plan: Plan, form: str, setting: Setting, worker: Worker, folder: Path) -> Build:
    folder.mkdir(exist_ok=True)
    plan.save(folder / "plan.json")
    run_passes(worker, form, compiling(setting, folder))
    evicts = cache_bytes(setting.target) if setting.streams_weights else 0
    return Build(folder=folder, candidate=name, weights=weight_arguments(form), evicts_bytes=evicts)


def compiling(setting: Setting, folder: Path) -> str:
    """Returns the pipeline that compiles the plan in a folder to kernels there, as `Build` has them."""
    target = str(write_target(setting.target, folder))
    options = {"target": target, "numerics": setting.numerics, "plan-in": str(folder / "plan.json")}
    launches = pass_text("tile-print-launches", {"output": str(folder / LAUNCHES), "for-runtime": "true"})
    kind = setting.target.kind
    subprogram = f"tilewright-{kind.backend}-subprogram"
    if not kind.assembles:
        options["object-path"] = str(folder / "kernels.o")
        return pipeline(pass_text(subprogram, options), launches)
    return pipeline(
        pass_text(subprogram, options),
        launches,
        pass_text("tile-emit-ptx", {"target": target, "path": str(folder / "kernels.ptx")}),
    )


def by_hash(plans: Sequence[Plan]) -> dict[str, Plan]:
    """Returns the plans by their hashes; of plans that are carried out alike, the first stays."""
    hashed: dict[str, Plan] = {}
    for plan in plans:
        hashed.setdefault(plan_hash(plan), plan)
    return hashed


_ABOUT = ("name", "reason", "wouldChange", "policy", "predicted", "bytes", "seconds")
"""Members of a plan that say something about it and change no code."""


def plan_hash(plan: Plan) -> str:
    """Returns a hash that is equal for plans that are carried out alike."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: bare(member) for name, member in value.items() if name not in _ABOUT}
        return [bare(item) for item in value] if isinstance(value, list) else value

    return hashlib.sha256(json.dumps(bare(plan.to_json()), sort_keys=True).encode()).hexdigest()


def is_unfused(plan: Plan) -> bool:
    """Returns true if every kernel computes one op."""
    return all(sum(len(group.ops) for group in kernel.groups) == 1 for kernel in plan.kernels)


def this_machine() -> str:
    """Returns the name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
