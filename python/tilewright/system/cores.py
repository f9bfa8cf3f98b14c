"""The processor cores that a program may use."""

from __future__ import annotations

import os
from pathlib import Path

MOST_THREADS = 64
"""That IREE's CPU runtime takes."""


def spell_threads(count: int) -> str:
    return f"{count} thread{'s' * (count != 1)}"


def available_cores() -> int:
    """Physical cores that this process may run on, at most as many as IREE's runtime can use.

    A core's second hardware thread adds nothing to kernels that keep its vector units busy.
    """
    return max(1, min(MOST_THREADS, len({_core(cpu) for cpu in _allowed_cpus()})))


def pin_to_core(number: int) -> None:
    """Keeps the calling thread on one of the cores that this process may use, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        first = {_core(cpu): cpu for cpu in sorted(os.sched_getaffinity(os.getpid()), reverse=True)}
        cpus = sorted(first.values())
        os.sched_setaffinity(0, {cpus[number % len(cpus)]})


def fills_machine(threads: int) -> bool:
    """Whether this many threads are one for every core of the machine, all of which this process may use."""
    return threads == available_cores() and len(_allowed_cpus()) == os.cpu_count()


def _allowed_cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _core(cpu: int) -> str:
    """A name that hardware threads of one core share."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)
