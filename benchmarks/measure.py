"""Measures systems on workloads: they take turns over several rounds, each in fresh processes with fresh inputs.

In a round of a workload, every system prepares it (compiles it in the first round, loads it in later ones) and its
outputs are checked against float64. Then all take turns until the time is up. A sample is one turn of one system. A
failure is recorded for its system, and the others continue.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto
from tilewright.reference.oracle import model_tolerance, random_inputs
from tilewright.simulator.traffic import compulsory_bytes

from benchmarks import arrays
from benchmarks.alone import alone
from benchmarks.client import Client, PeerError
from benchmarks.expected import (
    expected_outputs,
    expected_repetitions,
    largest_error,
    no_numbers,
)
from benchmarks.flops import contraction_flops
from benchmarks.peers import LIMITS, Facts, Settings
from benchmarks.repetition import COUNTS, NotRepeatableError, repeat
from benchmarks.workloads import Workload

SHORT_SECONDS = 2e-3
"""Seconds of a call below which its fixed cost matters, so that kernels are timed separately."""

# Seconds that calls fill after a warm-up, so that the clock's resolution and a single interrupt do not matter.
_BURST_SECONDS = 2e-3

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Amount of measuring: rounds, seconds, turns and limits."""

    rounds: int = 3
    seconds: float = 3.0
    """Seconds for all turns of a workload, in all rounds together."""
    least_turns: int = 3
    """Minimum number of turns in every round."""
    prepare_limit: float = 180.0
    call_limit: float = 60.0
    alone: tuple[str, ...] = ()
    """Command that keeps other work off the machine while systems take turns (see `alone`)."""


@dataclass
class Record:
    """Results of a system on a workload."""

    status: str = "ok"
    reason: str = ""
    facts: Facts | None = None
    max_rel_error: float | None = None
    samples: list[dict[int, float]] = field(default_factory=list)
    """For every turn, the seconds of a call by the number of repetitions in the program."""
    no_slope: str = ""
    """Reason why there are no repetitions; empty if there are some, or none are needed."""

    def fail(self, error: PeerError) -> None:
        self.status, self.reason = error.status, error.reason


@dataclass
class Result:
    """A workload, and the records of the systems that ran it."""

    workload: Workload
    compulsory_bytes: int
    contraction_flops: int
    records: dict[str, Record]
    is_short: bool | None = None
    """True if kernels are timed separately; the first round decides."""


def measure(
    workloads: Sequence[Workload],
    peers: Mapping[str, str],
    settings: Settings,
    plan: Plan,
    *,
    folder: Path,
    say: Say,
) -> Iterator[tuple[list[Result], dict[str, str]]]:
    """Yields all results so far, and the systems' versions, after every workload of every round."""
    items = [_Item(workload, peers, folder / f"{workload.name}-{workload.dtype}") for workload in workloads]
    versions: dict[str, str] = {}
    for number in range(plan.rounds):
        with ExitStack() as stack:
            clients = {
                name: stack.enter_context(Client(reference, settings, log=folder / f"{name}.log"))
                for name, reference in peers.items()
            }
            for index, item in enumerate(items):
                say(f"round {number + 1}/{plan.rounds}, {index + 1}/{len(items)}: {item.title}")
                _Round(item, clients, plan, seed=number).run()
                for client in clients.values():
                    versions |= client.versions
                yield [item.result for item in items if item.result is not None], versions


class _Item:
    """A workload with its files."""

    def __init__(self, workload: Workload, peers: Mapping[str, str], folder: Path) -> None:
        self.workload, self.folder = workload, folder
        self.records = {name: Record() for name in peers}
        self.result: Result | None = None

    @property
    def title(self) -> str:
        return f"{self.workload.name} {self.workload.dtype}"

    def program(self, model: ModelProto, count: int) -> Path:
        """Returns the file of the program with `count` repetitions."""
        path = self.folder / f"{count}.onnx"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            onnx.save(repeat(model, count), path)
        return path

    def cache(self, system: str) -> Path:
        path = self.folder / system
        path.mkdir(parents=True, exist_ok=True)
        return path


class _Round:
    """One round of one workload."""

    def __init__(self, item: _Item, clients: Mapping[str, Client], plan: Plan, *, seed: int) -> None:
        self._item, self._clients, self._plan = item, clients, plan
        self._model = item.workload.build()
        self._inputs = random_inputs(self._model, seed)
        self._expected = {1: expected_outputs(self._model, self._inputs)}
        self._is_first = item.result is None
        self._inputs_folder = item.folder / "inputs"
        arrays.save(self._inputs_folder, self._inputs)
        self._calls: dict[str, dict[int, int]] = {}
        if self._is_first:
            size = compulsory_bytes(self._model, self._inputs, self._narrowed())
            item.result = Result(item.workload, size, contraction_flops(self._model), item.records)

    def run(self) -> None:
        for system in self._running():
            self._attempt(system, self._prepare_and_check)
        if self._is_short():
            self._write_repetitions()
            # Nothing is timed here, so all systems may compile at once. (Above, compilers try out which flags are
            # best.)
            steps = [partial(self._attempt, name, self._prepare_repetitions) for name in self._running()]
            self._at_once([self._expect_repetitions, *steps])
            for system in self._running():
                self._attempt(system, self._check_repetitions)
            for system in self._running():
                self._attempt(system, self._choose_calls)
        with alone(self._plan.alone):
            self._take_turns()
        for system in self._running():
            self._attempt(system, lambda name: self._ask(name, "forget"))

    def _running(self) -> list[str]:
        return [name for name, record in self._item.records.items() if record.status == "ok"]

    def _attempt(self, system: str, step: Callable[..., object], *arguments: object) -> None:
        try:
            step(system, *arguments)
        except PeerError as error:
            self._item.records[system].fail(error)
            # The process may still hold the workload, and its times are not comparable with those of the others.
            self._clients[system].stop()

    def _at_once(self, steps: Sequence[Callable[[], None]]) -> None:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            try:
                list(pool.map(lambda step: step(), steps))
            except KeyboardInterrupt:
                # Nobody waits for the result of a compilation any more.
                pool.shutdown(wait=False, cancel_futures=True)
                for client in self._clients.values():
                    client.stop()
                raise

    def _ask(self, system: str, request: str, **arguments: Any) -> dict[str, Any]:
        return self._clients[system].ask(request, limit=self._plan.call_limit, **arguments)

    # Steps of a system

    def _prepare_and_check(self, system: str) -> None:
        record = self._item.records[system]
        record.facts = self._prepare(system, 1)
        if system not in LIMITS:
            error = self._check(system, 1)
            record.max_rel_error = max(error, record.max_rel_error or 0.0)
        self._calls[system] = {1: 1}
        self._calls[system] = self._calls_of(system)

    def _check(self, system: str, count: int) -> float:
        """Checks the error of `count` repetitions, which is at most the tolerance times the square root of `count`."""
        folder = self._item.cache(system) / "outputs"
        self._ask(system, "outputs", repetitions=count, folder=str(folder))
        outputs, expected = arrays.load(folder), self._expected[count]
        shutil.rmtree(folder)  # files of many repetitions are large
        error, bound = largest_error(outputs, expected), model_tolerance(self._model) * math.sqrt(count)
        if not error <= bound:
            reason = no_numbers(outputs, expected) or f"relative error {error:.1e} is above {bound:.0e}"
            raise PeerError("wrong", reason if count == 1 else f"{count} repetitions: {reason}")
        return error

    def _is_short(self) -> bool:
        """True if kernels are timed separately, because some system's call is short; the first round decides."""
        assert self._item.result is not None
        if self._item.result.is_short is None:
            seconds: list[float] = []
            for system in self._running():
                self._attempt(system, lambda name: seconds.append(self._time(name)[1]))
            self._item.result.is_short = min(seconds, default=math.inf) < SHORT_SECONDS
        return self._item.result.is_short

    def _prepare_repetitions(self, system: str) -> None:
        record = self._item.records[system]
        if record.no_slope:
            return
        try:
            for count in COUNTS[1:]:
                facts = self._prepare(system, count)
                if facts.kernels is not None and facts.kernels < count:
                    record.no_slope = "fuses repetitions"
                    return
        except PeerError as error:
            if error.status in ("crashed", "timed out"):
                raise
            record.no_slope = error.reason

    def _write_repetitions(self) -> None:
        """Writes the files of the repetitions; if that is impossible, records the reason why no system has a slope."""
        try:
            for count in COUNTS[1:]:
                self._item.program(self._model, count)
        except NotRepeatableError as error:
            for record in self._item.records.values():
                record.no_slope = str(error)

    def _expect_repetitions(self) -> None:
        """Computes the expected results of repetitions once; later rounds load what was compiled in the first."""
        if self._is_first and any(not record.no_slope for record in self._item.records.values()):
            self._expected |= expected_repetitions(self._model, self._inputs, COUNTS[1:])

    def _check_repetitions(self, system: str) -> None:
        if system not in LIMITS and not self._item.records[system].no_slope:
            for count in COUNTS[1:]:
                if count in self._expected:
                    self._check(system, count)

    def _choose_calls(self, system: str) -> None:
        if not self._item.records[system].no_slope:
            self._calls[system] = dict.fromkeys(COUNTS, 1)
            self._calls[system] = self._calls_of(system)

    def _prepare(self, system: str, count: int) -> Facts:
        item = self._item
        answer = self._clients[system].ask(
            "prepare",
            limit=self._plan.prepare_limit,
            model=str(item.program(self._model, count)),
            inputs=str(self._inputs_folder),
            repetitions=count,
            cache=str(item.cache(system)),
        )
        return Facts(**answer["facts"])

    def _calls_of(self, system: str) -> dict[int, int]:
        """Returns, for every program, the number of calls that fill a burst."""
        seconds = self._time(system)
        return {count: max(1, math.ceil(_BURST_SECONDS / max(s, 1e-7))) for count, s in seconds.items()}

    def _time(self, system: str) -> dict[int, float]:
        answer = self._ask(system, "time", calls={str(n): calls for n, calls in self._calls[system].items()})
        return {int(count): seconds for count, seconds in answer["seconds"].items()}

    # Turns

    def _take_turns(self) -> None:
        started, turns = time.perf_counter(), 0
        seconds = self._plan.seconds / self._plan.rounds
        while turns < self._plan.least_turns or time.perf_counter() - started < seconds:
            names = self._running()
            for offset in range(len(names)):
                self._attempt(names[(turns + offset) % len(names)], self._take_turn)
            turns += 1

    def _take_turn(self, system: str) -> None:
        self._item.records[system].samples.append(self._time(system))

    def _narrowed(self) -> list[arrays.Array]:
        """Returns the expected outputs in the model's own types."""
        types = [o.type.tensor_type.elem_type for o in self._model.graph.output]
        dtypes = [onnx.helper.tensor_dtype_to_np_dtype(t) for t in types]
        expected = self._expected[1]
        return [np.asarray(y.values).astype(d) for y, d in zip(expected, dtypes, strict=True)]
