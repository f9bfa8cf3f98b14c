"""Runs IREE's back end, which compiles a module with our kernels to a `.vmfb`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.api.front import Preprocessed
from tilewright.api.fuse import Fused, computable_by_iree
from tilewright.api.job import Job
from tilewright.api.stitch import Stitched
from tilewright.errors import IreeError
from tilewright.iree.faults import DATA_TILING, without_data_tiling
from tilewright.runtime.interface import Interface
from tilewright.runtime.stored import StoredWeights


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A compiled module, and what it contains in the end."""

    module: Path
    stitched: Stitched
    """The stitched module; it has no kernels of ours if IREE fails on them."""
    flags: tuple[str, ...]
    """Flags with which IREE compiled the module."""
    notes: tuple[str, ...]
    interface: Interface | None = None
    """Interface of a program whose file is no module but the code of its kernels (`undeployed`); None for a module."""


def finish(job: Job, front: Preprocessed, fused: Fused) -> Finished:
    """Compiles the module to `model.vmfb` in the job's folder."""
    with job.step("iree_back", "IREE: to the module"):
        module, stitched, flags, notes = _finish(job, front, fused.stitched)
    path = job.folder / "model.vmfb"
    path.write_bytes(module)
    fresh = tuple(note for note in notes if note not in fused.notes)
    return Finished(module=path, stitched=stitched, flags=tuple(flags), notes=fresh)


def to_stream(job: Job, front: Preprocessed, finished: Finished) -> str:
    """Returns the module that `finish` compiled, at IREE's stream phase, which has buffers instead of tensors."""
    imported, text = front.imported, finished.stitched.text
    if text == front.text:
        return job.iree.compile_to(imported.source, "stream", flags=finished.flags, name=imported.name)
    stream = job.iree.resume(
        text.encode(), "preprocessing", stop="stream", flags=finished.flags, name=imported.name
    )
    return stream.decode()


def _finish(
    job: Job, front: Preprocessed, stitched: Stitched
) -> tuple[bytes, Stitched, Sequence[str], list[str]]:
    """Runs IREE's back end and, if it fails, retries first without data tiling and then without our kernels.

    Data tiling is off from the start where IREE computes the module wrongly with it, unless the user requests it.
    """
    imported, flags, notes = front.imported, job.iree_flags, list[str]()
    is_asked_for = any(flag.partition("=")[0] == DATA_TILING for flag in job.options.iree_flags)
    reason = without_data_tiling(stitched.text)
    if reason is not None and DATA_TILING in flags and not is_asked_for:
        flags = [flag for flag in flags if flag != DATA_TILING]
        notes.append(f"data tiling is off, because {reason}")

    def attempt(text: str, with_flags: Sequence[str]) -> bytes:
        if text == front.text:
            # The text has no kernels of ours, so IREE starts again from the import: its own parser rejects some of its
            # text.
            return job.iree.compile(imported.source, flags=with_flags, name=imported.name)
        return job.iree.resume(text.encode(), "preprocessing", flags=with_flags, name=imported.name)

    try:
        return attempt(stitched.text, flags), stitched, flags, notes
    except IreeError as error:
        first = error
    untiled = [flag for flag in flags if flag != DATA_TILING]
    if len(untiled) < len(flags):
        try:
            module = attempt(stitched.text, untiled)
        except IreeError:
            module = None
        if module is not None:
            notes.append(f"data tiling is off, because IREE fails with it ({first.message})")
            return module, stitched, untiled, notes
    if job.options.strict or not stitched.report.kernels:
        raise first
    alone, widened = computable_by_iree(job, imported, front.text)
    notes += widened
    for fewer in (flags, untiled):
        try:
            module = attempt(alone, fewer)
        except IreeError:
            continue
        notes.append(f"none of our kernels is in the program, because IREE fails with them ({first.message})")
        report = replace(stitched.report, kernels=(), raw={})
        empty = replace(stitched, text=alone, report=report, plan=None, stored=StoredWeights())
        return module, empty, fewer, notes
    raise first
