"""Checks that this machine's GPU can run a program."""

from __future__ import annotations

import re

from tilewright.errors import ProgramError
from tilewright.runtime.cuda import CudaDevice, CudaDriver
from tilewright.runtime.metadata import Metadata


class NotResidentError(ProgramError):
    """The blocks of a kernel wait for each other, and this GPU cannot run all of them at once."""


def has_gpu() -> bool:
    """Returns True if this machine has a GPU and its driver."""
    try:
        CudaDriver()
    except ProgramError:
        return False
    return True


def refuse_older_gpu(metadata: Metadata) -> CudaDevice | None:
    """Raises `ProgramError` for a GPU that is too old, which the driver would report in its own words.

    Returns the GPU, or None without one: a program still loads then, so that it can be inspected.
    """
    needed = re.fullmatch(r"sm_(\d+)(\d)(a?)", metadata.capability)
    if not needed:
        return None
    try:
        gpu = CudaDriver().describe()
    except ProgramError:
        return None
    least = (int(needed[1]), int(needed[2]))
    if gpu.capability < least or (needed[3] and gpu.capability != least):
        major, minor = gpu.capability
        raise ProgramError(
            f"its kernels need compute capability {needed[1]}.{needed[2]}{' and no newer' if needed[3] else ''}, "
            f"but this GPU ({gpu.name}) has {major}.{minor}",
            where=metadata.entry,
            hint=f"compile it for target sm_{major}{minor}, or for both",
        )
    return gpu


def refuse_smaller_gpu(metadata: Metadata) -> None:
    """Raises `ProgramError` for a GPU that is too old, and `NotResidentError` for one that is so small that a grid
    barrier would never open.

    This is for IREE's runtime, which launches kernels without asking whether all blocks are resident; our own asks the
    driver (`cuda_session`).
    """
    gpu = refuse_older_gpu(metadata)
    if gpu is None:
        return
    counted_on = (
        (metadata.multiprocessors, gpu.multiprocessors, "multiprocessors"),
        (metadata.multiprocessor_threads, gpu.multiprocessor_threads, "threads of each multiprocessor"),
        (
            metadata.multiprocessor_shared_bytes,
            gpu.multiprocessor_shared_bytes,
            "bytes of shared memory of each multiprocessor",
        ),
    )
    for needs, has, what in counted_on:
        if has < needs:
            raise NotResidentError(
                f"the workgroups of its kernels wait for each other and count on {needs} {what}, "
                f"but this GPU ({gpu.name}) has {has}",
                where=metadata.entry,
                hint="compile it for this GPU or a target file with as many, or with --no-grid-sync",
            )
