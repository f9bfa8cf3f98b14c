"""The fusion stage: turns the ops of a model into few kernels and makes the module launch them."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.api.front import Preprocessed
from tilewright.api.job import Job
from tilewright.api.stitch import Stitched, UnreadableError, kernel_files, run_passes, stitch
from tilewright.frontends import ImportedModel
from tilewright.iree.faults import guard_divisions, hide_constants, widen_convolutions, widening_note
from tilewright.iree.lent import keep_arguments
from tilewright.records.report import Report
from tilewright.records.targets import Target, resolve_targets
from tilewright.records.threads import choose_threads


@dataclass(frozen=True, kw_only=True)
class Fused:
    """A model with our kernels in it, still at IREE's preprocessing phase."""

    stitched: Stitched
    targets: tuple[Target, ...]
    """Targets that it was compiled for, with the chosen number of threads."""
    threads: int
    notes: tuple[str, ...]


def fuse(job: Job, front: Preprocessed) -> Fused:
    """Plans and compiles kernels for the number of threads that is predicted to be fastest."""
    with job.step("tilewright", "fusing and generating kernels"):
        targets = job.targets
        stitched = _stitch(job, front, targets)
        threads = choose_threads(stitched.report, targets[0], job.threads) if job.kind.in_process else 1
        if job.kind.in_process and threads < job.threads[-1]:
            targets = tuple(resolve_targets(job.choice, threads=threads))
            stitched = _stitch(job, front, targets)
    text, notes = computable_by_iree(job, front.imported, stitched.text)
    found = [*stitched.notes, *(note for note in notes if note not in stitched.notes)]
    fused = Fused(stitched=replace(stitched, text=text), targets=targets, threads=threads, notes=tuple(found))
    _dump(job, fused)
    return fused


def computable_by_iree(job: Job, imported: ImportedModel, text: str) -> tuple[str, tuple[str, ...]]:
    """Returns a module that IREE's back end computes correctly with kernels of its own, and notes on the changes."""
    if imported.lends_inputs:
        continued = job.options.state.values()
        inputs = enumerate(imported.signature.inputs if imported.signature else ())
        text = keep_arguments(text, except_for=[place for place, spec in inputs if spec.name in continued])
    run = functools.partial(run_passes, job.worker)
    if job.kind.traps:
        text = guard_divisions(text, run)
    if job.kind.refuses_sliced_constants:
        text = hide_constants(text, run)
    if not job.kind.widens_convolutions:
        return text, ()
    widened, count = widen_convolutions(text, run, job.folder)
    return widened, (widening_note(count),) if count else ()


def _stitch(job: Job, front: Preprocessed, targets: Sequence[Target]) -> Stitched:
    """Runs our passes; a module that they cannot read goes to IREE unchanged, unless `strict` is set."""
    options = job.options
    try:
        return stitch(
            front.text,
            worker=job.worker,
            targets=targets,
            directory=job.folder,
            plan=options.plan,
            numerics=options.numerics,
            policy=options.policy,
            plan_seconds=options.plan_seconds,
            grid_sync=options.grid_sync,
            scopes=tuple(front.parameters),
            tuning=options.tuning,
            dump_dir=options.dump_dir,
            strict=options.strict,
            passes=options.passes,
        )
    except UnreadableError as error:
        if options.strict or options.plan is not None or options.passes:
            raise
        note = f"all of the model is left to IREE, because our stage cannot read it ({error.message})"
        return Stitched(text=front.text, report=Report(), plan=None, seconds=0.0, notes=(note,))


def _dump(job: Job, fused: Fused) -> None:
    job.dump("3-stitched.mlir", fused.stitched.text.encode())
    for name in ("plan.json", "report.json", "recipes.json", "target.json", *kernel_files(fused.targets)):
        job.dump_file(job.folder / name)
    how = {"numerics": job.options.numerics, "grid_sync": job.options.grid_sync}
    job.dump("options.json", json.dumps(how).encode())
