"""Runs the instrumented build of a model's kernels and reads off the bytes they move on their bindings.

The instrumented kernels have the plain kernels' code plus two counters; they are called here directly, on buffers of the
right size (what they hold does not matter: no access depends on data).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from native import Kernel, buffer, load_kernels


@dataclass(frozen=True, kw_only=True)
class KernelTraffic:
    """Bytes one launch of a kernel loads from and stores to its bindings, and the size of the bindings."""

    name: str
    loaded: int
    stored: int
    input_bytes: int
    output_bytes: int

    @property
    def compulsory(self) -> int:
        """Each input and each output once."""
        return self.input_bytes + self.output_bytes

    @property
    def ratio(self) -> float:
        return (self.loaded + self.stored) / self.compulsory


def run_instrumented(object_file: Path, manifest: Path) -> list[KernelTraffic]:
    """Traffic of every kernel in an object that `tilewright-cpu{count-bytes manifest=…}` wrote."""
    return [_run(kernel) for kernel in load_kernels(object_file, manifest)]


def _run(kernel: Kernel) -> KernelTraffic:
    sizes = kernel.binding_bytes
    buffers = [buffer(size) for size in sizes]
    counters = np.zeros(2, dtype=np.int64)
    kernel.run([*(address for _, address in buffers), counters.ctypes.data])
    inputs = len(sizes) - kernel.outputs
    return KernelTraffic(
        name=kernel.name,
        loaded=int(counters[0]),
        stored=int(counters[1]),
        input_bytes=sum(sizes[:inputs]),
        output_bytes=sum(sizes[inputs:]),
    )
