"""Makes the code of GPU kernels that the module embeds, and reports registers and spills.

It is PTX, which the driver assembles when the program is loaded. If NVIDIA's assembler (ptxas) is found, machine code
for the targets is beside it, with the registers that were checked here.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.api.fuse import Fused
from tilewright.api.job import Job, narrowest
from tilewright.api.stitch import image_file, kernel_files
from tilewright.errors import CompileError
from tilewright.records.targets import Target
from tilewright.system.deadline import Deadline
from tilewright.system.ptxas import (
    KernelResources,
    assemble,
    find_ptxas,
    join,
    launch_bounds,
    needed_capability,
    without_bounds,
)


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """Results of the assembler; empty for a CPU, where nothing is assembled."""

    capability: str = ""
    """Compute capability that a GPU needs: "sm_90", or "sm_90a" if the kernels run on no newer GPU."""
    resources: Mapping[str, KernelResources] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def assemble_kernels(job: Job, fused: Fused) -> Assembled:
    """Assembles the GPU kernels and collects what ptxas reports."""
    if not job.kind.assembles:
        return Assembled()
    capability = needed_capability(job.folder / "kernels.ptx") or narrowest(fused.targets).cpu
    if not fused.stitched.report.kernels:
        return Assembled(capability=capability)
    files = {job.folder / name: target for name, target in kernel_files(fused.targets).items()}
    ptxas = find_ptxas()
    if ptxas is None:
        for ptx in files:
            shutil.copyfile(ptx, image_file(ptx))
        note = "ptxas is not installed, so the kernels' registers are unknown; pip install 'tilewright[cuda]'"
        return Assembled(capability=capability, notes=(note,))
    with job.step("ptxas", "ptxas"):
        resources, notes = _assemble(files, ptxas, job.deadline)
    return Assembled(capability=capability, resources=resources, notes=notes)


def _assemble(
    kernels: Mapping[Path, Target], ptxas: str, deadline: Deadline
) -> tuple[Mapping[str, KernelResources], tuple[str, ...]]:
    """Returns what the assembler reports for the first file, and a note for each kernel that spills.

    Launch bounds keep kernels within the registers of a real GPU, but a user's own target may have fewer.
    """
    notes: list[str] = []
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(lambda ptx: _make_image(ptx, kernels[ptx], ptxas, deadline), kernels))
    for resources, target in zip(found, kernels.values(), strict=True):
        for name, kernel in resources.items():
            most = target.gpu.registers_per_thread
            if kernel.registers > most:
                raise CompileError(
                    f"kernel {name} takes {kernel.registers} registers a thread; target {target.name} has {most}",
                    hint="a larger gpu.registersPerThread in the target's file",
                )
            if kernel.spill_bytes:
                on = f" on {target.cpu}" if len(found) > 1 else ""
                notes.append(f"kernel {name} spills {kernel.spill_bytes} bytes{on}")
    return found[0], tuple(notes)


def _make_image(ptx: Path, target: Target, ptxas: str, deadline: Deadline) -> Mapping[str, KernelResources]:
    """Makes the code that the module embeds, of machine code and PTX, and returns what the assembler reports."""
    capability = needed_capability(ptx) or target.cpu
    cubin, image = ptx.with_suffix(".cubin"), image_file(ptx)
    resources: Mapping[str, KernelResources]
    resources = assemble(ptx, capability=capability, ptxas=ptxas, cubin=cubin, deadline=deadline)
    if any(kernel.spill_bytes for kernel in resources.values()):
        resources = _without_spills(ptx, cubin, resources, target, ptxas, deadline)
    if not join(ptx, cubin, capability=capability, ptxas=ptxas, image=image, deadline=deadline):
        shutil.copyfile(ptx, image)
    return resources


def _without_spills(
    ptx: Path,
    cubin: Path,
    resources: Mapping[str, KernelResources],
    target: Target,
    ptxas: str,
    deadline: Deadline,
) -> Mapping[str, KernelResources]:
    """Assembles a file again without bounds on the registers of kernels that spill, and takes that if they keep within
    these bounds by themselves: ptxas uses all registers that it is left, and may then spill although fewer are enough.
    """
    text = ptx.read_text()
    bounds = launch_bounds(text)
    spilling = [name for name, kernel in resources.items() if kernel.spill_bytes and name in bounds]
    freed, other = ptx.with_suffix(".freed.ptx"), cubin.with_suffix(".freed.cubin")
    freed.write_text(without_bounds(text, spilling))
    capability = needed_capability(ptx) or target.cpu
    again = assemble(freed, capability=capability, ptxas=ptxas, cubin=other, deadline=deadline)
    for name in spilling:
        most = bounds[name].registers(target.gpu.registers_per_sm)
        if again[name].spill_bytes or again[name].registers > most:
            return resources
    other.replace(cubin)
    return again
