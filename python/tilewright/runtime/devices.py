"""IREE's devices of this process: drivers, their allocators and threads.

One thread means IREE's `local-sync` driver, which runs everything on the calling thread: 15 us for a call instead of
105, and 0.25 us for a dispatch instead of 1.1 to 1.5. More threads mean `local-task`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from typing import Any

from iree import runtime
from iree.runtime import _binding

from tilewright.errors import ProgramError
from tilewright.runtime.at_exit import release_at_exit
from tilewright.runtime.interface import reason_of
from tilewright.system.cores import fills_machine

# Bytes of a workgroup's memory that our kernels may use. IREE gives a worker of `local-task` as much as its core's L2
# cache, or its L1 if the L2 size cannot be read.
WORKER_MEMORY_BYTES = 2 << 20

# Number of buffers that the results and transients of a call reuse from earlier calls. Fresh memory costs a page fault
# per 4 KiB, five times what a kernel takes to fill it.
_ALLOCATOR = "caching:device_local=*;*;64"

# Bytes that are kept allocated in a CUDA device's pool, so that the pool stays mapped.
_LITTLE_BYTES = 4096

# Constants of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

_LARGEST_INT = 2**31 - 1

_DEFAULT_TOPOLOGY = (
    "--task_topology_nodes=current",
    "--task_topology_max_group_count=64",
    "--task_topology_group_count=0",
)

_CUDA = 0
"""Key of the CUDA device, in place of a number of threads."""


class _Drivers:
    """The drivers of this process, each with a device, by number of threads or `_CUDA`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: dict[int, tuple[Any, Any]] = {}
        self.has_lent = False
        """True if memory of a device may be in use by tensors, which can outlive everything that Python releases."""
        release_at_exit(self)

    def release(self) -> None:
        if self.has_lent:
            # Memory is returned to its device, so the devices stay until the process has ended.
            _binding.disable_leak_checker()
            for made in self.made.values():
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        self.made.clear()


drivers = _Drivers()


def device_for(threads: int) -> Any:
    """Returns a device with a driver of its own for each number of threads, which IREE fixes when it makes a driver."""
    with drivers.lock:
        if threads not in drivers.made:
            drivers.made[threads] = _make_driver(threads)
        return drivers.made[threads][1]


def cuda_device() -> Any:
    """Returns the first CUDA device, with one stream, because kernels with grid barriers need the device for
    themselves."""
    try:
        with drivers.lock:
            if _CUDA not in drivers.made:
                driver = _binding.create_hal_driver("cuda")
                drivers.made[_CUDA] = driver, driver.create_default_device()
            return drivers.made[_CUDA][1]
    except Exception as error:
        raise ProgramError(
            f"no CUDA device can be used: {reason_of(error)}",
            hint="run it on a machine with an NVIDIA GPU and its driver",
        ) from error


def _make_driver(threads: int) -> tuple[Any, Any]:
    _keep_freed_memory()
    if threads == 1:
        driver = _binding.create_hal_driver("local-sync")
    else:
        # IREE takes these only as global flags; another driver in the process keeps its own values.
        runtime.flags.parse_flags(*_topology(threads), f"--task_worker_local_memory={WORKER_MEMORY_BYTES}")
        try:
            driver = _binding.create_hal_driver("local-task")
        finally:
            runtime.flags.parse_flags(*_DEFAULT_TOPOLOGY, "--task_worker_local_memory=0")
    return driver, driver.create_default_device(allocators=[_ALLOCATOR])


def occupy_pool(device: Any) -> list[Any]:
    """Allocates a little of the pool for results and transients of calls; it must be released before the device.

    CUDA unmaps the free memory of a pool whenever the stream is waited for, and maps it again at the next call. On an
    H200, calls of a 12 us kernel took 131 to 139 us, but 48 to 56 us while something of the pool was in use.
    """
    semaphore = device.create_semaphore(0)
    kept = [device.queue_alloca(_LITTLE_BYTES, [], [(semaphore, 1)])]
    semaphore.wait(1)
    return kept


def release_pool(kept: list[Any], device_for: Any) -> None:
    kept.clear()


def give_back_memory(contexts: list[Any], device: Any) -> None:
    """Returns the memory that a program's calls reused to the system."""
    contexts.clear()
    device.allocator.trim()
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def _keep_freed_memory() -> None:
    """Makes glibc keep large freed blocks while a program is loaded.

    The queues of IREE's `local-task` allocate transients, and results of IREE's own kernels, with malloc instead of the
    caching allocator; so does `local-sync` once programs of many sizes have filled its cache. malloc maps and unmaps
    blocks of more than 32 MB, so that every call touches fresh pages: a copy of 256 MB then takes 80 ms instead of 15.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return  # the user's own setting takes precedence
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_INT)
        mallopt(_M_TRIM_THRESHOLD, _LARGEST_INT)


def _topology(threads: int) -> tuple[str, ...]:
    """Returns one worker per core if the workers fill the machine; fewer workers are placed by the system, away from
    other processes."""
    if fills_machine(threads):
        return ("--task_topology_nodes=all", f"--task_topology_max_group_count={threads}")
    return (f"--task_topology_group_count={threads}",)
