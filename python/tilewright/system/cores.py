"""The processor cores that a program may use."""

from __future__ import annotations

import os
from pathlib import Path

MOST_THREADS = 64
"""Most threads that IREE's CPU runtime supports."""


def spell_threads(count: int) -> str:
    return f"{count} thread{'s' * (count != 1)}"


def available_cores() -> int:
    """Returns the physical cores that this process may run on, but no more than IREE's runtime can use.

    A core's second hardware thread adds nothing to kernels that keep its vector units busy.
    """
    return max(1, min(MOST_THREADS, len({_core(cpu) for cpu in _allowed_cpus()})))


def fills_machine(threads: int) -> bool:
    """Returns True if `threads` equals the number of cores of the machine, and this process may use all of them."""
    return threads == available_cores() and len(_allowed_cpus()) == os.cpu_count()


def _allowed_cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _core(cpu: int) -> str:
    """Returns a name that the hardware threads of one core share."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)
