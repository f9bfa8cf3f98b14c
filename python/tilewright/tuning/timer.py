"""How long kernels take on this machine: called directly, without a runtime's own costs, which all plans share."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from tilewright.system.cores import pin_to_core
from tilewright.tuning.service import Launch
from tilewright.worker.process import Worker, WorkerDied

if TYPE_CHECKING:
    from tilewright.runtime.kernels import Kernel

BURST_SECONDS = 2e-3
"""Calls fill about this time, so that the clock's resolution and a single interrupt do not matter."""
_LIMIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Build:
    """A plan of a subprogram, compiled."""

    folder: Path
    """Has `kernels.o` and `manifest.json`."""
    launches: Sequence[Launch]
    candidate: str
    """Which plan it is: its hash."""
    evicts_bytes: int = 0
    """Weights are in no cache of so many bytes when they are read; 0: they stay where they are."""


class TimingError(Exception):
    """A build did not run."""


class Timer(Protocol):
    """Entered while builds of one subprogram are timed: nothing else of ours runs then."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def seconds(self, build: Build) -> float:
        """Of running all launches of a build once; raises `TimingError`."""


class ProcessTimer:
    """Times in a process of its own, which a kernel may crash."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        self._folder, self._threads = folder, threads
        self._worker: Worker | None = None

    def __enter__(self) -> ProcessTimer:
        self._worker = Worker(self._folder, limit_seconds=_LIMIT_SECONDS)
        self._worker.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._worker is not None
        self._worker.__exit__(kind, error, trace)
        self._worker = None

    def seconds(self, build: Build) -> float:
        assert self._worker is not None, "a timer is entered first"
        header = {
            "request": f"{__name__}:answer",
            "step": "the timing of kernels",
            "folder": str(build.folder),
            "launches": list(build.launches),
            "threads": self._threads,
            "evicts_bytes": build.evicts_bytes,
        }
        try:
            reply, _, _ = self._worker.ask(header)
        except WorkerDied as death:
            raise TimingError(f"the kernel's process {death.how}") from None
        if not reply["ok"]:
            raise TimingError(reply["error"])
        return float(reply["seconds"])


# In the process.

_loaded: dict[tuple[str, int], _Runner] = {}
# Builds of a subprogram share their tensors: what one of them finds in the caches, the next one does, too.
_tensors: dict[tuple[str, int, int], tuple[Any, int]] = {}
# Weights that must come from memory have several copies, which take turns, whoever reads them.
_turns = itertools.count()
_MOST_COPIES = 16
_PAGE, _SHIFT = 4096, 5 * 64


def answer(header: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Times one burst of a build, which stays loaded."""
    key = (header["folder"], header["threads"])
    if key not in _loaded:
        _loaded[key] = _Runner(
            Path(header["folder"]), header["launches"], header["threads"], header["evicts_bytes"]
        )
    return {"ok": True, "seconds": _loaded[key].burst()}, b""


class _Runner:
    """Runs the launches of a build over and over.

    Threads share the workgroups of each kernel and run on without waiting for each other: what kernels compute here is
    of no interest, and waiting in Python would take longer than many of them.
    """

    def __init__(self, folder: Path, launches: Sequence[Launch], threads: int, evicts_bytes: int) -> None:
        # Needs numpy and IREE's tools, which other requests do not.
        from tilewright.runtime.kernels import load_kernels

        kernels = {k.name: k for k in load_kernels(folder / "kernels.o", folder / "manifest.json")}
        bound = [(kernels[launch["kernel"]], launch) for launch in launches]
        sizes = {
            name: size
            for kernel, launch in bound
            for name, size in zip(launch["bindings"], kernel.binding_bytes, strict=True)
            if name in launch["weights"]
        }
        copies = min(_MOST_COPIES, math.ceil(2 * evicts_bytes / max(1, sum(sizes.values())))) if sizes else 1
        self._copies = [
            [_calls(bound, thread, threads, copy) for thread in range(threads)]
            for copy in range(max(1, copies))
        ]
        # Left to the system, two of them may share a core for as long as a burst takes.
        places = itertools.count()
        self._pool = ThreadPoolExecutor(threads, initializer=lambda: pin_to_core(next(places)))
        self._once = self._run(1)

    def burst(self) -> float:
        self._run(1)
        repetitions = max(1, math.ceil(BURST_SECONDS / max(self._once, 1e-7)))
        self._once = self._run(repetitions) / repetitions
        return self._once

    def _run(self, repetitions: int) -> float:
        turns = [self._copies[next(_turns) % len(self._copies)] for _ in range(repetitions)]
        shares = [[turn[thread] for turn in turns] for thread in range(len(turns[0]))]
        if len(shares) == 1:
            started, ended = _repeat(shares[0], None)
            return ended - started
        gate = threading.Barrier(len(shares))
        spans = list(self._pool.map(lambda share: _repeat(share, gate), shares))
        return max(ended for _, ended in spans) - min(started for started, _ in spans)


_Calls = list[Callable[[], int]]


def _calls(bound: Sequence[tuple[Kernel, Launch]], thread: int, threads: int, copy: int) -> _Calls:
    """What one thread does for one run of all launches."""
    calls: _Calls = []
    for kernel, launch in bound:
        bindings = zip(launch["bindings"], kernel.binding_bytes, strict=True)
        addresses = [_tensor(name, size, copy if name in launch["weights"] else 0) for name, size in bindings]
        calls += kernel.calls(addresses, range(thread, kernel.workgroups, threads))
    return calls


def _tensor(name: str, size: int, copy: int) -> int:
    """The address of so many bytes, which stay where they are."""
    from tilewright.runtime.kernels import buffer

    key = (name, size, copy)
    if key not in _tensors:
        # At different places of their pages: loads wait for stores whose addresses end alike.
        shift = len(_tensors) * _SHIFT % _PAGE
        storage, address = buffer(size + shift)
        storage.fill(0)  # Pages that nobody wrote are all the same one.
        _tensors[key] = storage, address + shift
    return _tensors[key][1]


def _repeat(runs: Sequence[_Calls], gate: threading.Barrier | None) -> tuple[float, float]:
    if gate is not None:
        gate.wait()
    started = time.perf_counter()
    for calls in runs:
        for call in calls:
            if call() != 0:
                raise RuntimeError("a kernel failed")
    return started, time.perf_counter()
