"""Compilation of models for the end-to-end tests, and inspection of the result independently of the compiler's report.

A program is judged by what a call launches: in the module at IREE's `stream` phase, every kernel, copy and fill is one
line, and those that are not of our executable are IREE's own work.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import cpu_levels
import pytest
import tilewright
from onnx import ModelProto
from tilewright.iree.compiler import IreeCompiler
from tilewright.records.targets import resolve_targets
from tilewright.runtime.processor import missing_features
from tilewright.simulator.traffic import KernelTraffic, measure_traffic
from tilewright.worker.process import Worker

# At most the threads of the tests' machine; the number is fixed because plans depend on it.
THREADS = 2
# The splice gives this name to the executable that holds our kernels.
_OUR_EXECUTABLE = "tilewright_kernels"
_KINDS = {"copy": "copies", "fill": "fills"}
_LAUNCH = re.compile(r'^\s+(?:%\S+ = )?"stream\.cmd\.(dispatch|copy|fill)"(?:.*entry_points = \[@(\w+)::)?')

Key = TypeVar("Key")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Launches:
    """Operations of IREE's runtime in one call of a program."""

    ours: int
    """Dispatches of our kernels."""
    others: int
    """Dispatches of IREE's kernels."""
    copies: int
    fills: int
    """Fills of constants, and of the accumulators of IREE's own kernels."""

    @property
    def dispatches(self) -> int:
        return self.ours + self.others


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A program, and the folder with its intermediate forms."""

    program: tilewright.Program
    folder: Path

    def launches(self) -> Launches:
        """Returns the launches of the program, with our kernels."""
        return self._launches("3-stitched.mlir" if self.program.kernels else "2-preprocessing.mlir")

    def launches_of_iree_alone(self) -> Launches:
        """Returns the launches of the same model with the same flags, but without our stage."""
        return self._launches("2-preprocessing.mlir")

    def traffic(self) -> list[KernelTraffic]:
        """Measures the bytes that our kernels move, with the instrumented build of the same plan.

        Skips the test if this machine cannot run it.
        """
        if reason := cpu_levels.why_not_run(cpu_levels.current()):
            pytest.skip(reason)
        return measure_traffic(self.folder)

    def _launches(self, name: str) -> Launches:
        source = (self.folder / name).read_bytes()
        flags = self.program.metadata.iree_flags
        return count_launches(_iree().resume(source, "preprocessing", flags=flags, stop="stream").decode())


@contextmanager
def compiled(model: ModelProto, *, target: str = "cpu") -> Iterator[Compiled]:
    """Compiles the model in a temporary folder, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="tilewright-e2e-") as folder:
        program = tilewright.compile(model, target, threads=[THREADS], dump_dir=Path(folder), strict=True)
        yield Compiled(program=program, folder=Path(folder))


def count_launches(stream: str) -> Launches:
    """Counts the launches in IREE's generic text of the stream phase. Initializers and the function that returns what
    they compute run once at load, and do not count."""
    counts = {"ours": 0, "others": 0, "copies": 0, "fills": 0}
    in_function = False
    for line in stream.splitlines():
        if line.startswith('  "'):
            in_function = line.startswith('  "util.func"') and "$at_load" not in line
        launch = _LAUNCH.match(line) if in_function else None
        if launch is not None:
            kind, executable = launch.groups()
            counts[_KINDS.get(kind) or ("ours" if executable == _OUR_EXECUTABLE else "others")] += 1
    return Launches(**counts)


def ahead(
    request: pytest.FixtureRequest, parameter: str, work: Callable[[Key], Result]
) -> Iterator[Callable[[Key], Result]]:
    """Serves a module's fixture: does the work of all selected tests ahead, on all cores; a test then takes its
    result.

    Compiling a model takes one process, most of the time on one core, so this halves the time on two cores. The work
    is for one feature level, so the fixture must request `cpu_target`, which makes it anew for the next level.
    """
    wanted = dict.fromkeys(selected(request, parameter))
    pool = ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0)))
    futures = {key: pool.submit(work, key) for key in wanted}

    def result_of(key: Key) -> Result:
        if key not in futures:
            futures[key] = pool.submit(work, key)
        return futures[key].result()

    try:
        yield result_of
    finally:
        pool.shutdown(cancel_futures=True)
        _close_workers()


def selected(request: pytest.FixtureRequest, parameter: str) -> Sequence[Any]:
    """Returns the values of a parameter with which tests of the module run at the current feature level."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    calls = [
        item.callspec.params for item in items if item.module is request.module and hasattr(item, "callspec")
    ]
    level = cpu_levels.current()
    return [
        params[parameter]
        for params in calls
        if parameter in params and params.get("cpu_target", cpu_levels.HOST) == level
    ]


# Each thread of the pool has a worker process, for the tests' requests to IREE.
_local = threading.local()
_workers: list[Worker] = []
_scratch = tempfile.TemporaryDirectory(prefix="tilewright-e2e-")


def _iree() -> IreeCompiler:
    if not hasattr(_local, "compiler"):
        worker = Worker(Path(_scratch.name))
        _workers.append(worker)
        _local.compiler = IreeCompiler(worker)
    compiler: IreeCompiler = _local.compiler
    return compiler


def _close_workers() -> None:
    while _workers:
        _workers.pop().close()


def runs_here(target: str) -> bool:
    """Returns True if this machine has the instructions of a CPU target."""
    (known,) = resolve_targets(target, threads=1)
    return not missing_features(known.features)
