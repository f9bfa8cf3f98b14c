"""Describes the machine and measures its limits: with loops of the extension module, and copies of large arrays with
`limits.c`, which is compiled and run here."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.calibration.machine import CACHES, read_caches
from tilewright.ir.native import native

_SOURCE = Path(__file__).with_name("limits.c")
_COMPILER = "clang-22"
_FLAGS = ("-O3", "-march=native", "-pthread")
# Bytes that exceed any cache: of each of the two arrays that are copied, and of what is read.
_COPIED_BYTES = 256 << 20
_REGISTER_BYTES = (16, 32, 64)
_TRIALS, _TRIAL_SECONDS = 7, 0.02


def describe() -> dict[str, Any]:
    """Returns processor, cores and operating system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    """Returns the processor's name, with family and model, because virtual machines shorten the name."""
    first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    fields = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())
    }
    if "model name" not in fields:
        return platform.machine()
    return f"{fields['model name']} (family {fields['cpu family']}, model {fields['model']})"


def limits(folder: Path, *, threads: int, vector_bytes: int) -> dict[str, Any] | None:
    """Measures what `threads` threads reach together; returns None without a C compiler.

    - `fma_gflops`: GFLOP/s of multiply-adds in registers of `vector_bytes` bytes, and in `fma_gflops_of_registers` by
      the bytes of each kind of registers that the processor has
    - `levels`: for each level of the memory, its bytes (in all caches that the threads use; 0 for memory), and GB/s
      of reads and of copies, where a copied byte counts twice
    - `copy_gb_per_s`, `copy_non_temporal_gb_per_s`: GB/s of copies of arrays that exceed all caches
    """
    program = folder / "limits"
    try:
        build_limits(program)
    except FileNotFoundError:
        return None
    printed = subprocess.run([program, str(threads), str(_COPIED_BYTES)], check=True, capture_output=True)
    rates = {width: _best(native.measure_multiply_adds, width, threads) for width in _REGISTER_BYTES}
    return {
        "fma_gflops": rates[vector_bytes],
        "fma_gflops_of_registers": {str(width): rate for width, rate in rates.items() if rate},
        "levels": _levels(threads, max(width for width, rate in rates.items() if rate)),
        **json.loads(printed.stdout),
    }


def _levels(threads: int, width: int) -> list[dict[str, Any]]:
    caches = read_caches(CACHES, cores=threads)
    sizes = {f"L{cache.level}": cache.capacity_bytes * (1 if cache.shared else threads) for cache in caches}
    used = {name: size // (2 * threads) for name, size in sizes.items()} | {"DRAM": _COPIED_BYTES // threads}
    return [
        {
            "name": name,
            "bytes": sizes.get(name, 0),
            "read_gb_per_s": _best(native.measure_reads, width, size, threads),
            "copy_gb_per_s": _best(native.measure_copies, width, size, threads),
        }
        for name, size in used.items()
    ]


def _best(measure: Callable[..., float], *arguments: int) -> float:
    """Returns the best of some trials in units of 10^9, because other programs only ever make one slower."""
    return round(max(measure(*arguments, _TRIAL_SECONDS) for _ in range(_TRIALS)) * 1e-9, 1)


def build_limits(file: Path, *flags: str) -> None:
    """Compiles `limits.c` to a program, or as the flags say; raises FileNotFoundError without a C compiler."""
    subprocess.run([_COMPILER, *_FLAGS, *flags, str(_SOURCE), "-o", str(file)], check=True)


def revision(root: Path) -> str:
    """Returns the checkout's commit, followed by "+" if there are changes."""
    described = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty=+"], capture_output=True, text=True
    )
    return described.stdout.strip() or "unknown"
