"""NVIDIA's assembler, which turns PTX into machine code and reports registers, spills and shared memory of kernels.

Compiling does not need it, because the driver assembles PTX itself. If it is found, on the machine or in the wheel
`nvidia-cuda-nvcc` (the extra `cuda`), it checks the PTX, reports what the planner can only estimate, and saves the
driver its work when a program is loaded.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import CompileError
from tilewright.system import lifeline
from tilewright.system.deadline import Deadline

_TARGET = re.compile(r"^\.target (?P<name>\w+)", re.MULTILINE)
_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_SPILLS = re.compile(r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads")
_USED = re.compile(r"Used (?P<registers>\d+) registers")
_SHARED = re.compile(r"(?P<bytes>\d+) bytes smem")
_BOUNDS = re.compile(
    r"^\.visible \.entry (?P<name>\w+)\([^)]*\)\n"
    r"\.maxntid (?P<threads>\d+), 1, 1\n(?P<line>\.minnctapersm (?P<blocks>\d+)\n)",
    re.MULTILINE,
)
_REGISTER_UNIT = 8
"""Registers that a thread gets at a time."""


@dataclass(frozen=True)
class KernelResources:
    """Resources that a thread and a block of a kernel use."""

    registers: int
    spill_bytes: int
    """Bytes stored to and loaded from local memory because there are too few registers."""
    shared_bytes: int
    """Bytes of static shared memory, without those that the launch adds."""

    def __str__(self) -> str:
        spills = f", {self.spill_bytes} bytes spilled" if self.spill_bytes else ", no spills"
        return (
            f"{self.registers} registers a thread{spills}, {self.shared_bytes} bytes of static shared memory"
        )


@dataclass(frozen=True)
class LaunchBounds:
    """What PTX says of the launches of a kernel: the threads of a block, and the blocks that an SM must hold."""

    threads: int
    blocks: int

    def registers(self, per_sm: int) -> int:
        """Returns the most registers of a thread, on an SM with so many."""
        return per_sm // (self.threads * self.blocks) // _REGISTER_UNIT * _REGISTER_UNIT


def find_ptxas() -> str | None:
    """Returns the path of the assembler, or None."""
    return shutil.which("ptxas") or next(_in_wheels(), None)


def _in_wheels() -> Iterator[str]:
    for path in sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin/ptxas")):
        yield str(path)


def needed_capability(ptx: Path) -> str | None:
    """Returns the capability that PTX names as its target: "sm_90", or "sm_90a", which newer GPUs do not run. None if
    there is none."""
    with contextlib.suppress(OSError):
        found = _TARGET.search(ptx.read_text(errors="replace"))
        return found["name"] if found else None
    return None


def launch_bounds(ptx: str) -> dict[str, LaunchBounds]:
    """Returns the launch bounds of each kernel that has them."""
    return {
        found["name"]: LaunchBounds(int(found["threads"]), int(found["blocks"]))
        for found in _BOUNDS.finditer(ptx)
    }


def without_bounds(ptx: str, kernels: Collection[str]) -> str:
    """Returns the PTX without the number of blocks that an SM must hold, for these kernels."""
    return _BOUNDS.sub(
        lambda found: found[0].removesuffix(found["line"]) if found["name"] in kernels else found[0], ptx
    )


def assemble(
    ptx: Path, *, capability: str, ptxas: str, cubin: Path, deadline: Deadline | None = None
) -> dict[str, KernelResources]:
    """Assembles PTX for a capability ("sm_90") to `cubin` and returns the resources of each kernel. Raises
    `CompileError` if ptxas refuses the PTX."""
    command = [ptxas, f"-arch={capability}", "-v", "--split-compile=0", str(ptx), "-o", str(cubin)]
    return read_resources(_run(command, deadline or Deadline(None)))


def join(
    ptx: Path, cubin: Path, *, capability: str, ptxas: str, image: Path, deadline: Deadline | None = None
) -> bool:
    """Writes a file from which the driver takes the machine code on a GPU of this capability, and the PTX on a newer
    one. Returns False if the tool for that, `fatbinary`, is not beside ptxas."""
    tool = Path(ptxas).with_name("fatbinary")
    if not tool.is_file():
        return False
    number = capability.removeprefix("sm_")
    parts = [f"--image3=kind={kind},sm={number},file={path}" for kind, path in (("elf", cubin), ("ptx", ptx))]
    # the PTX stays readable
    _run([str(tool), "--64", "--compress=false", f"--create={image}", *parts], deadline or Deadline(None))
    return True


def _run(command: Sequence[str], deadline: Deadline) -> str:
    """Runs a tool and returns its log."""
    name = Path(command[0]).name
    try:
        result = lifeline.run(command, timeout=deadline.left())
    except subprocess.TimeoutExpired:
        raise deadline.passed(name) from None
    if result.returncode != 0:
        reason = next((line for line in result.stderr.splitlines() if line.strip()), "no reason given")
        raise CompileError(
            f"{name} refuses the kernels: {reason.strip()}",
            hint="this is a bug in Tilewright; please report it with the model",
            details=result.stderr,
        )
    return result.stderr


def read_resources(log: str) -> dict[str, KernelResources]:
    """Parses the output of `ptxas -v`."""
    resources: dict[str, KernelResources] = {}
    for entry in re.split(r"(?=Compiling entry function)", log):
        name, used = _ENTRY.search(entry), _USED.search(entry)
        if not name or not used:
            continue
        spills, shared = _SPILLS.search(entry), _SHARED.search(entry)
        resources[name["name"]] = KernelResources(
            registers=int(used["registers"]),
            spill_bytes=int(spills["stores"]) + int(spills["loads"]) if spills else 0,
            shared_bytes=int(shared["bytes"]) if shared else 0,
        )
    return resources
