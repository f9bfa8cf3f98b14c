"""Times kernels on this machine, on processors or the GPU, by calling them directly, without the costs of a runtime,
which all plans share."""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
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
"""Seconds of calls per burst, so that the clock's resolution and a single interrupt do not matter."""
_LIMIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Build:
    """A compiled plan of a subprogram."""

    folder: Path
    """Folder with `kernels.o` and `manifest.json`, or for a GPU with `kernels.ptx` and `launches.json`."""
    launches: Sequence[Launch]
    candidate: str
    """Hash of the plan."""
    evicts_bytes: int = 0
    """Bytes of cache that must not hold the weights when they are read; 0 lets them stay in the caches."""


class TimingError(Exception):
    """A build failed to run."""


class Timer(Protocol):
    """Protocol of timers. A timer is entered while builds of one subprogram are timed, and nothing else of ours runs
    then."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def seconds(self, build: Build) -> float:
        """Returns the seconds of running all launches of a build once; raises `TimingError`."""


class ProcessTimer:
    """Times builds in a separate process, which a kernel may crash."""

    def __init__(self, folder: Path, *, threads: int, on_gpu: bool = False) -> None:
        self._folder, self._threads, self._on_gpu = folder, threads, on_gpu
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
        assert self._worker is not None, "the timer must be entered first"
        header = {
            "request": f"{__name__}:{'answer_on_gpu' if self._on_gpu else 'answer'}",
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


# Process side.

_loaded: dict[tuple[str, int], _Runner] = {}
# Builds of a subprogram share their tensors, so that all of them find the same data in the caches.
_tensors: dict[tuple[str, int, int], tuple[Any, int]] = {}
# Weights that must come from memory have several copies, which are used in turn by all builds.
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


_on_gpu: dict[str, Callable[[], float]] = {}


@functools.cache
def _gpu() -> tuple[Any, Any]:
    """Returns the GPU, and what cools its caches before a sample."""
    from tilewright.runtime.cold import ColdCache
    from tilewright.runtime.cuda import Cuda

    cuda = Cuda()
    return cuda, ColdCache(cuda)


def answer_on_gpu(header: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Times one run of a build on the GPU, which stays loaded. A kernel that fails breaks the process's use of the GPU,
    so the process ends."""
    from tilewright.errors import ProgramError
    from tilewright.tuning.on_gpu import is_alive, prepare

    folder = Path(header["folder"])
    cuda, cool = _gpu()
    try:
        if str(folder) not in _on_gpu:
            flow = json.loads((folder / "launches.json").read_text())
            run = prepare((folder / "kernels.ptx").read_bytes(), flow, cuda, cool)
            run()  # the first run loads the kernels
            _on_gpu[str(folder)] = run
        return {"ok": True, "seconds": _on_gpu[str(folder)]()}, b""
    except ProgramError as error:
        if not is_alive(cuda):
            os._exit(1)
        return {"ok": False, "error": str(error)}, b""


class _Runner:
    """Runs the launches of a build repeatedly.

    Threads share the workgroups of each kernel and continue without waiting for each other: the results do not matter
    here, and waiting in Python would take longer than many kernels.
    """

    def __init__(self, folder: Path, launches: Sequence[Launch], threads: int, evicts_bytes: int) -> None:
        # This import needs numpy and IREE's tools, which other requests do not.
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
        # If the system placed them, two threads might share a core for a whole burst.
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
    """Returns the calls of one thread for one run of all launches."""
    calls: _Calls = []
    for kernel, launch in bound:
        bindings = zip(launch["bindings"], kernel.binding_bytes, strict=True)
        addresses = [_tensor(name, size, copy if name in launch["weights"] else 0) for name, size in bindings]
        calls += kernel.calls(addresses, range(thread, kernel.workgroups, threads))
    return calls


def _tensor(name: str, size: int, copy: int) -> int:
    """Returns the address of `size` bytes, which stay allocated."""
    from tilewright.runtime.kernels import buffer

    key = (name, size, copy)
    if key not in _tensors:
        # Tensors start at different offsets within their pages, because loads wait for stores to addresses with the
        # same low bits.
        shift = len(_tensors) * _SHIFT % _PAGE
        storage, address = buffer(size + shift)
        storage.fill(0)  # Unwritten pages all map to the same page of zeros.
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
