"""What this processor can do, and what a program needs of it."""

from __future__ import annotations

import ctypes
import functools
import platform
import re
from pathlib import Path


def missing_features(features: str) -> list[str]:
    """Returns those of the LLVM features ("+avx2,+fma") that this machine lacks; a program that uses them would
    trap."""
    present = _processor_flags()
    if present is None:
        return []
    needed = [
        f[1:] for f in features.split(",") if re.match(r"\+(avx(?!10)|amx|fma|f16c|bmi|ssse3|sse4|popcnt)", f)
    ]
    return [f for f in needed if _plain(f) not in present]


def has_feature(feature: str) -> bool:
    """Returns True if this processor has a feature in LLVM's spelling ("sse4.2", "avx512f")."""
    return _plain(feature) in (_processor_flags() or ())


@functools.cache
def _processor_flags() -> frozenset[str] | None:
    """Returns the processor's flags as Linux names them, without punctuation; None if they cannot be read."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), None)
    return frozenset(map(_plain, flags)) if flags else None


def _plain(feature: str) -> str:
    plain = re.sub(r"[-_.]", "", feature)
    return _LINUX_NAMES.get(plain, plain)


_LINUX_NAMES = {"bmi": "bmi1", "sse3": "pni"}
"""Features that Linux calls something else."""


@functools.cache
def ask_for_amx() -> None:
    """Requests AMX permission from the Linux kernel where available; without it, AMX instructions trap."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return
    try:
        if "amx_tile" not in Path("/proc/cpuinfo").read_text():
            return
    except OSError:
        return
    system_call, request_permission, tile_data = 158, 0x1023, 18  # arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)
    ctypes.CDLL(None).syscall(system_call, request_permission, tile_data)
