"""How long kernels take on this machine: called directly, without a runtime's own costs, which all plans share."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tilewright.process import Worker, WorkerDied
from tilewright.tuning.service import Launch

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
            "request": "time",
            "folder": str(build.folder),
            "launches": list(build.launches),
            "threads": self._threads,
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
_tensors: dict[tuple[str, int], tuple[Any, int]] = {}


def answer(header: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Times one burst of a build, which stays loaded."""
    key = (header["folder"], header["threads"])
    if key not in _loaded:
        _loaded[key] = _Runner(Path(header["folder"]), header["launches"], header["threads"])
    return {"ok": True, "seconds": _loaded[key].burst()}, b""


class _Runner:
    """Runs the launches of a build over and over.

    Threads share the workgroups of each kernel and run on without waiting for each other: what kernels compute here is
    of no interest, and waiting in Python would take longer than many of them.
    """

    def __init__(self, folder: Path, launches: Sequence[Launch], threads: int) -> None:
        # Needs numpy and IREE's tools, which other requests do not.
        from tilewright.kernels import load_kernels

        kernels = {k.name: k for k in load_kernels(folder / "kernels.o", folder / "manifest.json")}
        self._shares: list[list[Callable[[], int]]] = [[] for _ in range(threads)]
        for launch in launches:
            kernel = kernels[launch["kernel"]]
            bindings = zip(launch["bindings"], kernel.binding_bytes, strict=True)
            addresses = [_tensor(name, size) for name, size in bindings]
            for index, share in enumerate(self._shares):
                share += kernel.calls(addresses, range(index, kernel.workgroups, threads))
        self._pool = ThreadPoolExecutor(max_workers=threads)
        self._once = self._run(1)

    def burst(self) -> float:
        self._run(1)
        repetitions = max(1, math.ceil(BURST_SECONDS / max(self._once, 1e-7)))
        self._once = self._run(repetitions) / repetitions
        return self._once

    def _run(self, repetitions: int) -> float:
        if len(self._shares) == 1:
            started, ended = _repeat(self._shares[0], repetitions, None)
            return ended - started
        gate = threading.Barrier(len(self._shares))
        spans = list(self._pool.map(lambda share: _repeat(share, repetitions, gate), self._shares))
        return max(ended for _, ended in spans) - min(started for started, _ in spans)


def _tensor(name: str, size: int) -> int:
    """The address of so many bytes, which stay where they are."""
    from tilewright.kernels import buffer

    if (name, size) not in _tensors:
        _tensors[name, size] = buffer(size)
        _tensors[name, size][0].fill(0)  # Pages that nobody wrote are all the same one.
    return _tensors[name, size][1]


def _repeat(
    calls: Sequence[Callable[[], int]], repetitions: int, gate: threading.Barrier | None
) -> tuple[float, float]:
    if gate is not None:
        gate.wait()
    started = time.perf_counter()
    for _ in range(repetitions):
        for call in calls:
            if call() != 0:
                raise RuntimeError("a kernel failed")
    return started, time.perf_counter()
