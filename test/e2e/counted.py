"""Runs the instrumented build of a model's kernels and reads off the bytes they move on their bindings.

The instrumented kernels have the plain kernels' code plus two counters; they are called here directly, with IREE's
executable ABI, one workgroup after another, on buffers of the right size (what they hold does not matter: no access
depends on data).
"""

from __future__ import annotations

import ctypes
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LINKER = "/usr/lib/llvm-22/bin/ld.lld"
_ALIGNMENT = 64


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


class _DispatchState(ctypes.Structure):
    _fields_ = [
        ("workgroup_size_x", ctypes.c_uint32),
        ("workgroup_size_y", ctypes.c_uint32),
        ("workgroup_size_z", ctypes.c_uint16),
        ("constant_count", ctypes.c_uint16),
        ("workgroup_count_x", ctypes.c_uint32),
        ("workgroup_count_y", ctypes.c_uint32),
        ("workgroup_count_z", ctypes.c_uint16),
        ("max_concurrency", ctypes.c_uint8),
        ("binding_count", ctypes.c_uint8),
        ("constants", ctypes.c_void_p),
        ("binding_ptrs", ctypes.c_void_p),
        ("binding_lengths", ctypes.c_void_p),
    ]


class _WorkgroupState(ctypes.Structure):
    _fields_ = [
        ("workgroup_id_x", ctypes.c_uint32),
        ("workgroup_id_y", ctypes.c_uint32),
        ("workgroup_id_z", ctypes.c_uint16),
        ("reserved", ctypes.c_uint16),
        ("processor_id", ctypes.c_uint32),
        ("local_memory", ctypes.c_void_p),
        ("local_memory_size", ctypes.c_uint32),
    ]


def _buffer(size: int) -> tuple[np.ndarray, int]:
    """Zeroed bytes, and their first aligned address."""
    storage = np.zeros(size + _ALIGNMENT, dtype=np.uint8)
    address = storage.ctypes.data
    return storage, (address + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def run_instrumented(object_file: Path, manifest: Path) -> list[KernelTraffic]:
    """Traffic of every kernel in an object that `tilewright-cpu{count-bytes manifest=…}` wrote."""
    library_file = object_file.with_suffix(".so")
    subprocess.run([LINKER, "-shared", str(object_file), "-o", str(library_file)], check=True)
    library = ctypes.CDLL(str(library_file))
    return [_run(library, kernel) for kernel in json.loads(manifest.read_text())]


def _run(library: ctypes.CDLL, kernel: dict[str, Any]) -> KernelTraffic:
    sizes: list[int] = kernel["binding_bytes"]
    buffers = [_buffer(size) for size in sizes]
    counters = np.zeros(2, dtype=np.int64)
    pointers = (ctypes.c_void_p * (len(sizes) + 1))(
        *[address for _, address in buffers], counters.ctypes.data
    )
    dispatch = _DispatchState(
        workgroup_count_x=kernel["workgroups"],
        binding_count=len(sizes) + 1,
        binding_ptrs=ctypes.addressof(pointers),
    )
    local, local_address = _buffer(kernel["block_bytes"])
    entry = getattr(library, kernel["name"])
    for index in range(kernel["workgroups"]):
        workgroup = _WorkgroupState(
            workgroup_id_x=index, local_memory=local_address, local_memory_size=len(local)
        )
        if entry(None, ctypes.byref(dispatch), ctypes.byref(workgroup)) != 0:
            raise RuntimeError(f"kernel {kernel['name']} failed in workgroup {index}")
    outputs = kernel["outputs"]
    return KernelTraffic(
        name=kernel["name"],
        loaded=int(counters[0]),
        stored=int(counters[1]),
        input_bytes=sum(sizes[: len(sizes) - outputs]),
        output_bytes=sum(sizes[len(sizes) - outputs :]),
    )
