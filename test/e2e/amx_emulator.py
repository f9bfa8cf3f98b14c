"""Emulation of AMX on any x86-64 machine: `amx_emulator.c` executes its instructions in this process, in place of the
processor."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

CLANG = "/usr/lib/llvm-22/bin/clang"
_SOURCE = Path(__file__).with_name("amx_emulator.c")
_KINDS = ("configurations", "loads", "stores", "products")
_folder = tempfile.TemporaryDirectory(prefix="tilewright-amx-")


@dataclass
class Emulated:
    """Counts of the executed instructions."""

    counts: dict[str, int] = field(default_factory=dict)
    error: str = ""
    """The first thing that the processor would have refused."""


@cache
def build(source: Path, *flags: str) -> ctypes.CDLL:
    """Builds a library from C code."""
    library = Path(_folder.name) / f"{source.stem}.so"
    command = [
        CLANG,
        "-O2",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        *flags,
        str(source),
        "-o",
        str(library),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


@contextmanager
def emulated() -> Iterator[Emulated]:
    """Makes AMX's instructions work inside the `with` block; afterwards, the result has their counts. The caller
    checks for errors."""
    emulator = build(_SOURCE)
    emulator.emulator_error.restype = ctypes.c_char_p
    emulator.emulator_count.restype = ctypes.c_long
    result = Emulated()
    emulator.emulator_install()
    try:
        yield result
    finally:
        emulator.emulator_remove()
        result.error = emulator.emulator_error().decode()
        result.counts = {kind: emulator.emulator_count(i) for i, kind in enumerate(_KINDS)}
