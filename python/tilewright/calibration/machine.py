"""Measures this machine: its units and memory by loops of the extension module, launches by compiled programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.calibration.processor import Cache
from tilewright.errors import CalibrationError
from tilewright.ir.native import native
from tilewright.records.targets import CostParameter, Target
from tilewright.system.cores import available_cores

if TYPE_CHECKING:
    from tilewright.runtime.program import Program

_TRIALS = 5
"""Trials of which a measurement takes the best: other programs only ever make one slower."""
_SECONDS = 0.02
"""Seconds of a trial of a loop, which is several times the slice that a scheduler gives to a program."""
_CALLS = 20
"""Calls in a trial of a program."""
_KERNELS = 33
"""Kernels of the longer of two programs whose difference gives the time of a launch."""
_ELEMENTS = 4096
"""Elements that a core computes in a kernel, in f32: some hundred nanoseconds of work."""
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
"""Folder in which Linux describes the caches of a core."""


class Machine:
    """This processor, with as many threads as it has cores that this process may use."""

    def __init__(self, base: Target) -> None:
        self._base = base
        self._programs: dict[tuple[int, bool], Program] = {}
        self.cores = available_cores()
        self.processor = processor_name()
        self.caches: Sequence[Cache] = tuple(read_caches(CACHES, cores=self.cores))
        if not self.caches:
            raise CalibrationError(
                "the system does not say which caches the processor has", where=str(CACHES)
            )

    def multiply_adds(self, vector_bytes: int) -> float:
        return max(native.measure_multiply_adds(vector_bytes, self.cores, _SECONDS) for _ in range(_TRIALS))

    def copies(self, bytes_of_core: int) -> float:
        width = self._base.vector_bytes
        return max(native.measure_copies(width, bytes_of_core, self.cores, _SECONDS) for _ in range(_TRIALS))

    def launch(self, *, workgroups: bool) -> float:
        one, many = (self._program(kernels, workgroups=workgroups) for kernels in (1, _KERNELS))
        data = _input(self.cores)
        seconds = min(_seconds(lambda: many(data)) for _ in range(_TRIALS)) - min(
            _seconds(lambda: one(data)) for _ in range(_TRIALS)
        )
        return max(0.0, seconds / (_KERNELS - 1))

    def _program(self, kernels: int, *, workgroups: bool) -> Program:
        """Returns a program of kernels that cannot be fused, whose results each core computes alone or all together."""
        from tilewright.api.compilation import compile  # it loads the compilers

        key = (kernels, workgroups)
        if key not in self._programs:
            seconds = 1e-9 if workgroups else 1.0
            least = CostParameter(name="cpu.workgroupSeconds", value=seconds)
            self._programs[key] = compile(
                _chain(kernels, elements=_ELEMENTS * self.cores),
                replace(self._base, costs=(*self._base.costs, least)),
                policy="unfused",
                threads=[self.cores],
                tuning=False,
                cache=False,
            )
        return self._programs[key]


def _seconds(call: Callable[[], object]) -> float:
    """Returns the mean time of a call, after one that does not count."""
    call()
    started = time.perf_counter()
    for _ in range(_CALLS):
        call()
    return (time.perf_counter() - started) / _CALLS


def _input(cores: int) -> Any:
    import numpy as np

    return np.ones(_ELEMENTS * cores, np.float32)


def _chain(kernels: int, *, elements: int) -> str:
    """Returns a function that squares each element once for each kernel."""
    kind = f"tensor<{elements}xf32>"
    lines = [
        "#same = affine_map<(d0) -> (d0)>",
        f"func.func @main(%v0: {kind}) -> {kind} {{",
        f"  %empty = tensor.empty() : {kind}",
    ]
    for number in range(kernels):
        lines += [
            f"  %v{number + 1} = linalg.generic "
            '{indexing_maps = [#same, #same], iterator_types = ["parallel"]}',
            f"      ins(%v{number} : {kind}) outs(%empty : {kind}) {{",
            "  ^bb0(%x: f32, %init: f32):",
            "    %square = arith.mulf %x, %x : f32",
            "    linalg.yield %square : f32",
            f"  }} -> {kind}",
        ]
    return "\n".join([*lines, f"  return %v{kernels} : {kind}", "}"])


def processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "this processor"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "this processor"
    )


def read_caches(folder: Path, *, cores: int) -> list[Cache]:
    """Returns the levels of data caches that Linux describes in a folder of a processor, innermost first; none on
    another system."""
    found = []
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size, cpus = (
                (index / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
            )
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            found.append(Cache(int(level), int(size[:-1]) << 10, shared=cores > 1 and _count(cpus) >= cores))
    return sorted(found, key=lambda cache: cache.level)


def _count(cpus: str) -> int:
    """Returns the number of processors in a list such as "0-3,8"."""
    ranges = [part.partition("-") for part in cpus.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)
