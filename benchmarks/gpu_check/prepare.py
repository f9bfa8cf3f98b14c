"""Does on all cores at once what every system would wait for: draws weights and lets the driver assemble kernels.

The driver caches the assembled kernels, and a case stores the drawn arrays in its folder.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tilewright.runtime.cuda import Cuda
from tilewright.system.cores import available_cores
from tilewright.system.lifeline import end_with_parent

from benchmarks.gpu_check.case import Case

_CACHE_BYTES = 4 << 30


def use_cache(folder: Path) -> None:
    """Makes this process and its children use a separate cache of assembled kernels."""
    os.environ.update(CUDA_CACHE_PATH=str(folder), CUDA_CACHE_MAXSIZE=str(_CACHE_BYTES))


def prepare_all(folder: Path, entries: Iterable[Mapping[str, Any]], *, seconds: float) -> Iterator[str]:
    """Prepares every workload; returns the failures, which the next user of the workload will meet again."""
    # A forked process cannot use the driver that this one has opened.
    with multiprocessing.get_context("spawn").Pool(available_cores(), initializer=end_with_parent) as pool:
        failures = pool.imap_unordered(functools.partial(_prepare, folder), list(entries))
        try:
            while True:
                if failure := failures.next(seconds):
                    yield failure
        except StopIteration:
            return
        except multiprocessing.TimeoutError:
            yield f"not all is ready: a workload took more than {seconds:g} s"


def _prepare(folder: Path, entry: Mapping[str, Any]) -> str:
    case = Case(folder / entry["folder"], entry)
    try:
        _ = case.parameters
        if entry["kernels"]:
            _cuda().load(case.ptx)
    except Exception as error:  # any kind of failure leaves the others running
        return f"{entry['folder']}: {error}"
    return ""


@functools.cache
def _cuda() -> Cuda:
    return Cuda()
