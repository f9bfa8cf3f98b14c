"""Describes the machine and measures its limits (with `limits.c`, which is compiled and run here)."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).with_name("limits.c")
_COMPILER = "clang-22"
_FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-pthread")
# Bytes of each of the two arrays that are copied; more than any cache.
_COPIED_BYTES = 256 << 20


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


def limits(folder: Path, *, threads: int) -> dict[str, float] | None:
    """Measures GFLOP/s of multiply-adds and GB/s of copies with `threads` threads; returns None without a C
    compiler."""
    program = folder / "limits"
    try:
        build_limits(program)
    except FileNotFoundError:
        return None
    printed = subprocess.run([program, str(threads), str(_COPIED_BYTES)], check=True, capture_output=True)
    measured: dict[str, float] = json.loads(printed.stdout)
    return measured


def build_limits(file: Path, *flags: str) -> None:
    """Compiles `limits.c` to a program, or as the flags say; raises FileNotFoundError without a C compiler."""
    subprocess.run([_COMPILER, *_FLAGS, *flags, str(_SOURCE), "-o", str(file)], check=True)


def revision(root: Path) -> str:
    """Returns the checkout's commit, followed by "+" if there are changes."""
    described = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty=+"], capture_output=True, text=True
    )
    return described.stdout.strip() or "unknown"
