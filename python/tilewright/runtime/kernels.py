"""Loads the kernels of an object file and calls them directly, with IREE's ABI, one workgroup after another."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.system.linker import link_kernels

_ALIGNMENT = 64


class _Environment(ctypes.Structure):
    _fields_ = [("before", ctypes.c_void_p * 4), ("processor", ctypes.c_uint64 * 8)]


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


def buffer(size: int) -> tuple[np.ndarray, int]:
    """Returns zeroed bytes and their first aligned address."""
    storage = np.zeros(size + _ALIGNMENT, dtype=np.uint8)
    address = storage.ctypes.data
    return storage, (address + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel of an object, with its entry in the manifest."""

    name: str
    entry: Any
    workgroups: int
    outputs: int
    binding_bytes: Sequence[int]
    block_bytes: int

    def run(self, addresses: Sequence[int], *, processor: int = 0, workgroups: range | None = None) -> None:
        """Runs workgroups (by default all) on bindings at `addresses`; `processor` holds the feature bits that
        kernels see."""
        chosen = range(self.workgroups) if workgroups is None else workgroups
        for index, call in zip(chosen, self.calls(addresses, chosen, processor=processor), strict=True):
            if call() != 0:
                raise RuntimeError(f"kernel {self.name} failed in workgroup {index}")

    def calls(
        self, addresses: Sequence[int], workgroups: Sequence[int], *, processor: int = 0
    ) -> list[Callable[[], int]]:
        """Returns calls for one thread that run one workgroup each and return 0; they share local memory."""
        environment = _Environment(processor=(ctypes.c_uint64 * 8)(processor))
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        dispatch = _DispatchState(
            workgroup_count_x=self.workgroups,
            binding_count=len(addresses),
            binding_ptrs=ctypes.addressof(pointers),
        )
        local, local_address = buffer(self.block_bytes)
        # Structures refer to each other by address, which keeps nothing alive, so the calls keep them.
        alive = (pointers, local)
        return [
            partial(
                _call, self.entry, environment, dispatch, _workgroup(index, local_address, len(local)), alive
            )
            for index in workgroups
        ]


def _workgroup(index: int, local_address: int, local_size: int) -> _WorkgroupState:
    return _WorkgroupState(workgroup_id_x=index, local_memory=local_address, local_memory_size=local_size)


def _call(
    entry: Any, environment: _Environment, dispatch: _DispatchState, workgroup: _WorkgroupState, _: object
) -> int:
    return int(entry(ctypes.byref(environment), ctypes.byref(dispatch), ctypes.byref(workgroup)))


def load_kernels(object_file: Path, manifest: Path) -> list[Kernel]:
    """Loads the kernels of an object that `tilewright-cpu{object-path=… manifest=…}` wrote."""
    library_file = object_file.with_suffix(".so")
    link_kernels(object_file, library_file)
    library = ctypes.CDLL(str(library_file))
    return [
        Kernel(entry=getattr(library, kernel["name"]), **kernel)
        for kernel in json.loads(manifest.read_text())
    ]
