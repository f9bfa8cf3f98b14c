"""Features of this processor, and those that a program needs."""

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
    return [feature for feature in needed_features(features) if linux_name(feature) not in present]


def needed_features(features: str) -> list[str]:
    """Returns those of the LLVM features ("+avx2,+fma,-sse4a") without which code for them may trap, without signs."""
    needed = r"\+(avx(?!10)|amx|fma|f16c|bmi|ssse3|sse4|popcnt)"
    return [feature[1:] for feature in features.split(",") if re.match(needed, feature)]


def has_feature(feature: str) -> bool:
    """Returns True if this processor has a feature in LLVM's spelling ("sse4.2", "avx512f")."""
    return linux_name(feature) in (_processor_flags() or ())


@functools.cache
def _processor_flags() -> frozenset[str] | None:
    """Returns the processor's flags as Linux names them, without punctuation; None if they cannot be read."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), None)
    return frozenset(map(linux_name, flags)) if flags else None


def linux_name(feature: str) -> str:
    """Returns Linux's name of an LLVM feature, without punctuation: "sse42" for "sse4.2"."""
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
