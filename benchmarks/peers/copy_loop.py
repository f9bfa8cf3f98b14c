"""The machine's fastest copy of a workload's largest input; not a peer, but the limit of memory-bound workloads.

It takes turns with the systems, so that other load slows all of them alike.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.machine import build_limits
from benchmarks.peers import Array, Facts, Settings, UnsupportedError

_VECTOR_BYTES = 64
_TRIALS = 5


class CopyLoop:
    def __init__(self, settings: Settings) -> None:
        self._threads = settings.threads

    def versions(self) -> dict[str, str]:
        return {}

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> _Copy:
        if repetitions > 1:
            raise UnsupportedError("a copy has no repetitions")
        library = cache / "copy.so"
        if not library.exists():
            try:
                build_limits(library, "-shared", "-fPIC")
            except FileNotFoundError as error:
                raise UnsupportedError(f"no compiler for the loop: {error}") from None
        return _Copy(ctypes.CDLL(str(library)), max(inputs, key=lambda array: array.nbytes), self._threads)


class _Copy:
    facts = Facts(detail="the faster of ordinary and non-temporal stores")

    def __init__(self, library: ctypes.CDLL, array: Array, threads: int) -> None:
        size = array.nbytes // _VECTOR_BYTES * _VECTOR_BYTES
        self._source, self._destination = _ordinary(size), _ordinary(size)
        self._source[:] = array.reshape(-1).view(np.uint8)[:size]
        loops = [
            partial(
                library.copy_arrays,
                threads,
                ctypes.c_void_p(self._source.ctypes.data),
                ctypes.c_void_p(self._destination.ctypes.data),
                ctypes.c_size_t(size),
                non_temporal,
            )
            for non_temporal in (0, 1)
        ]
        self.call = min(loops, key=_quickest)

    def outputs(self) -> list[Array]:
        return [self._destination]


def _ordinary(size: int) -> Array:
    """Returns memory in ordinary pages, which the runtimes use; NumPy's own would be in huge pages."""
    memory = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    memory[:] = 0  # makes all pages resident
    return memory


def _quickest(loop: partial[object]) -> float:
    seconds = []
    for _ in range(_TRIALS):
        started = time.perf_counter()
        loop()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
