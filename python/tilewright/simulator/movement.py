"""Measures what kernels move between the levels of a memory hierarchy by replaying their accesses on simulated caches.

The traced build of a program's kernels records every address that the code reads and writes, in its bindings and in the
workgroup's memory. Caches with least-recently-used replacement then count, line by line, what each level fetches and
writes back. Workgroups run one after another on one simulated core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.ir.module import Module
from tilewright.ir.native import native
from tilewright.iree.text import from_iree
from tilewright.pipelines import pass_text, pipeline
from tilewright.runtime.kernels import Kernel, buffer, load_kernels

_HEADER = 2  # the number of accesses, and the number that the buffer has room for
_ROOM = 1 << 23  # initial room in accesses; pages that nothing is written to cost nothing


@dataclass(frozen=True, kw_only=True)
class Cache:
    """One cache level. `ways=0` is fully associative."""

    capacity_bytes: int
    line_bytes: int = 64
    ways: int = 0


@dataclass(frozen=True, kw_only=True)
class LevelMovement:
    """Bytes moved between a level and the one below it."""

    fetched: int
    written_back: int

    @property
    def bytes(self) -> int:
        return self.fetched + self.written_back


class Hierarchy:
    """Caches, innermost first, which keep their content from kernel to kernel."""

    def __init__(self, caches: Sequence[Cache]) -> None:
        self._caches = tuple(caches)
        self._simulator = native.CacheSimulator([(c.capacity_bytes, c.line_bytes, c.ways) for c in caches])

    def replay(self, records: np.ndarray) -> None:
        """Replays accesses in the format that a traced kernel records."""
        self._simulator.replay(records.ctypes.data, len(records))

    def movement(self) -> list[LevelMovement]:
        """Returns what each level has moved so far, including the dirty lines that are still to be written back."""
        self._simulator.flush()
        return [
            LevelMovement(
                fetched=traffic.fills * cache.line_bytes, written_back=traffic.write_backs * cache.line_bytes
            )
            for cache, traffic in zip(self._caches, self._simulator.traffic(), strict=True)
        ]


def compile_traced(programs: str, folder: Path, *, target: str = "cpu") -> list[Kernel]:
    """Compiles a module of tile programs to kernels that record their accesses."""
    module = Module.parse(f"module {{\nmodule @tilewright_kernels {{\n{programs}\n}}\n}}")
    paths = {"object-path": str(folder / "traced.o"), "manifest": str(folder / "traced.json")}
    module.run(
        pipeline(pass_text("tilewright-cpu-codegen", {"target": target, "trace-accesses": True, **paths}))
    )
    return load_kernels(folder / "traced.o", folder / "traced.json")


def traced_build(dump: Path) -> list[Kernel]:
    """Builds the traced kernels of a program, in launch order, from the plan in its dump folder."""
    module = Module.parse(from_iree((dump / "2-preprocessing.mlir").read_text()))
    files = {
        "object-path": dump / "traced.o",
        "manifest": dump / "traced.json",
        "target": dump / "target.json",
        "plan-in": dump / "plan.json",
    }
    options = {name: str(path) for name, path in files.items()}
    module.run_unrecorded(pipeline(pass_text("tilewright-cpu", {**options, "trace-accesses": True})))
    return load_kernels(dump / "traced.o", dump / "traced.json")


def trace(kernel: Kernel, addresses: Sequence[int], hierarchy: Hierarchy) -> int:
    """Runs a traced kernel on its bindings, one workgroup after another; returns the number of accesses."""
    count = 0
    records = np.zeros(_HEADER + _ROOM + 1, dtype=np.uint64)
    for workgroup in range(kernel.workgroups):
        while True:
            records[0], records[1] = 0, len(records) - _HEADER - 1
            kernel.run([*addresses, records.ctypes.data], workgroups=range(workgroup, workgroup + 1))
            used = int(records[0])
            if used <= int(records[1]):
                break
            # Run again with room for all accesses, which do not depend on data.
            records = np.zeros(_HEADER + used + 1, dtype=np.uint64)
        hierarchy.replay(records[_HEADER : _HEADER + used])
        count += used
    return count


def simulate(kernels: Sequence[Kernel], caches: Sequence[Cache]) -> list[LevelMovement]:
    """Returns the movement of kernels that run in sequence, each on its own tensors, from cold caches."""
    hierarchy = Hierarchy(caches)
    for kernel in kernels:
        buffers = [buffer(size) for size in kernel.binding_bytes]
        trace(kernel, [address for _, address in buffers], hierarchy)
    return hierarchy.movement()
