"""Programs without a module for IREE: the code of their kernels is all that they need to run here.

IREE's back end takes half of the time of a small compilation, and only makes what it needs to launch the kernels. What
is compiled with `deploy=False` leaves it out, if all kernels are ours.
"""

from __future__ import annotations

import json

from tilewright.api.finish import Finished
from tilewright.api.front import Preprocessed
from tilewright.api.fuse import Fused
from tilewright.api.job import Job
from tilewright.api.stitch import LAUNCHES, image_file, kernel_files
from tilewright.runtime.interface import Interface
from tilewright.runtime.launches import plan_launches
from tilewright.system.linker import link_kernels


def finish_for_here(job: Job, front: Preprocessed, fused: Fused) -> Finished | None:
    """Writes the code of the kernels to one file in place of a module. Returns None for a program that needs IREE, in a
    call or when it is loaded."""
    imported, options = front.imported, job.options
    entry, signature, path = options.entry or imported.entry, imported.signature, job.folder / LAUNCHES
    if not fused.stitched.report.kernels or not path.exists() or signature is None or entry is None:
        return None
    flow = json.loads(path.read_text())
    plan = plan_launches(flow, signature) if not options.state else None
    if plan is None or plan.at_load:
        return None
    code = job.folder / "kernels.code"
    with job.step("link"):
        if job.kind.assembles:
            images = [image_file(job.folder / name).read_bytes() for name in kernel_files(fused.targets)]
            code.write_bytes(b"".join(images))
        else:
            code = code.with_suffix(".so")
            link_kernels(job.folder / "kernels.o", code, job.deadline)
    interface = Interface(entry, signature)
    return Finished(module=code, stitched=fused.stitched, flags=(), notes=(), interface=interface)
