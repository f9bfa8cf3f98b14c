"""IREE's linker, which makes libraries of the objects that our passes write."""

from __future__ import annotations

import subprocess
from pathlib import Path

from iree.compiler.tools.binaries import find_tool

from tilewright.errors import CompileError
from tilewright.system import lifeline
from tilewright.system.deadline import Deadline


def link_kernels(kernels: Path, library: Path, deadline: Deadline | None = None) -> None:
    """Makes a library of what `tile-emit-object` wrote. Raises `CompileError` if the linker refuses it."""
    deadline = deadline or Deadline(None)
    linker = [find_tool("iree-lld"), "-flavor", "gnu", "-shared", "--whole-archive"]
    command = [*linker, str(kernels), "-o", str(library)]
    try:
        done = lifeline.run(command, timeout=deadline.left())
    except subprocess.TimeoutExpired:
        raise deadline.passed("the linker") from None
    if done.returncode != 0:
        raise CompileError("the kernels cannot be linked", details=done.stderr)
