"""Times kernels on this machine, on processors (`on_cpu`) or the GPU (`on_gpu`), without IREE's runtime."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tilewright.errors import ProgramError
from tilewright.worker.process import Worker, WorkerDied

LAUNCHES = "launches.json"
"""Name of the file of a build that says which kernels run on which tensors."""
_LIMIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Build:
    """A compiled plan of a subprogram."""

    folder: Path
    """Folder with `kernels.o`, or for a GPU `kernels.ptx`, and `launches.json`."""
    candidate: str
    """Hash of the plan."""
    weights: Sequence[int] = ()
    """Arguments of the function that are weights."""
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
            "request": f"{__name__}:answer",
            "step": "the timing of kernels",
            "folder": str(build.folder),
            "weights": list(build.weights),
            "evicts_bytes": build.evicts_bytes,
            "threads": self._threads,
            "on_gpu": self._on_gpu,
        }
        try:
            reply, _, _ = self._worker.ask(header)
        except WorkerDied as death:
            raise TimingError(f"the kernel's process {death.how}") from None
        if not reply["ok"]:
            raise TimingError(reply["error"])
        return float(reply["seconds"])


# Process side.

_prepared: dict[str, Callable[[], float]] = {}
"""Functions that time the builds of this process once."""


@functools.cache
def _operands() -> Any:
    """Returns the memory that all builds for the processor read."""
    from tilewright.tuning.on_cpu import Operands

    return Operands()


@functools.cache
def _gpu() -> tuple[Any, Any]:
    """Returns the GPU, and what cools its caches before a sample."""
    from tilewright.runtime.cold import ColdCache
    from tilewright.runtime.cuda import Cuda

    cuda = Cuda()
    return cuda, ColdCache(cuda)


def answer(header: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Times a build once. It stays loaded. A kernel that fails breaks the process's use of a GPU, so the process
    ends."""
    from tilewright.tuning.on_gpu import is_alive

    folder = header["folder"]
    try:
        if folder not in _prepared:
            _prepared[folder] = _prepare(**header)
        return {"ok": True, "seconds": _prepared[folder]()}, b""
    except ProgramError as error:
        if header["on_gpu"] and not is_alive(_gpu()[0]):
            os._exit(1)
        return {"ok": False, "error": str(error)}, b""


def _prepare(
    *, folder: str, weights: Sequence[int], evicts_bytes: int, threads: int, on_gpu: bool, **_: Any
) -> Callable[[], float]:
    # These imports need numpy and the runtimes, which other requests do not.
    if on_gpu:
        from tilewright.tuning.on_gpu import prepare

        cuda, cool = _gpu()
        launches = json.loads((Path(folder) / LAUNCHES).read_text())
        run = prepare((Path(folder) / "kernels.ptx").read_bytes(), launches, cuda, cool)
        run()  # the first run loads the kernels
        return run
    from tilewright.tuning.on_cpu import prepare as prepare_here

    return prepare_here(
        Path(folder), weights=weights, evicts_bytes=evicts_bytes, threads=threads, operands=_operands()
    )
