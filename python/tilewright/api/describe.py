"""The last stages: store the weights in the layout that kernels read, and describe the program."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.api.assemble import Assembled
from tilewright.api.finish import Finished, to_stream
from tilewright.api.front import Preprocessed
from tilewright.api.fuse import Fused
from tilewright.api.job import Job, narrowest
from tilewright.api.stitch import LAUNCHES, Stitched, image_file, kernel_files
from tilewright.errors import CompileError
from tilewright.frontends import ImportedModel
from tilewright.records.dims import open_dims_of
from tilewright.records.report import Report
from tilewright.records.signature import Signature, TensorSpec
from tilewright.records.targets import Target
from tilewright.records.threads import seconds_of_iree
from tilewright.runtime.interface import read_interface
from tilewright.runtime.launches import CodeImage, LaunchPlan, plan_launches
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.state import check_in_place, check_state
from tilewright.system.ptxas import needed_capability

_MAY_BE_UNSIGNED = re.compile(rb"\AML\xefR|(?:\b|x)ui(?:8|16|32|64)\b")
"""Pattern of bytecode, or of an unsigned element type in a model's text."""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """Everything that a program consists of."""

    module: Path
    parameters: Mapping[str, Path]
    metadata: Metadata


def write_weights(job: Job, front: Preprocessed, stitched: Stitched) -> dict[str, Path]:
    """Writes the parameter files of a module with our kernels; returns those of the program, by scope."""
    return stitched.stored.write(front.parameters, job.folder)


def store_weights(
    job: Job, front: Preprocessed, fused: Fused, finished: Finished, early: Future[dict[str, Path]]
) -> dict[str, Path]:
    """Returns the program's parameter files, and removes the imported ones that they replace.

    `early` is `write_weights` for the fused module, which runs while the compilers do. A module that was finished
    without our kernels reads other weights.
    """
    job.progress("storing weights in the layout that kernels read")
    with job.step("weights"):
        written = early.result()
        if finished.stitched is not fused.stitched:
            written = write_weights(job, front, finished.stitched)
        for scope, path in front.parameters.items():
            if written[scope] != path and path.parent == job.folder and not front.imported.is_dynamic:
                path.unlink()
    return written


def describe(
    job: Job,
    front: Preprocessed,
    fused: Fused,
    assembled: Assembled,
    finished: Finished,
    parameters: Mapping[str, Path],
) -> Compiled:
    """Reads the module's interface and checks that its state is updated in place."""
    imported, options = front.imported, job.options
    interface = finished.interface or read_interface(finished.module, entry=options.entry or imported.entry)
    signature = (
        imported.signature or interface.signature or job.iree.signature(imported.source, interface.entry)
    )
    if signature is not None:
        signature = with_unsigned_types(job, imported, signature, interface.entry)
        signature = with_names_of_jax(job, imported, signature, interface.entry)
        signature.check_sizes()
    check_state(options.state, signature)
    notes = list(finished.notes)
    if options.state and signature is not None:
        with job.step("state"):
            stream = to_stream(job, front, finished)
        try:
            check_in_place(stream, interface.entry, options.state, signature)
        except CompileError as error:
            if not imported.is_dynamic or options.strict:
                raise
            notes.append(
                f"IREE's dynamic program copies its state, shapes with kernels do not ({error.message})"
            )
    narrow, stitched = narrowest(fused.targets), finished.stitched
    metadata = Metadata(
        target=narrow.name
        if job.kind.has_capabilities
        else ",".join(target.name for target in fused.targets),
        threads=fused.threads,
        entry=interface.entry,
        device=job.kind.device,
        is_deployable=finished.interface is None,
        resources=assembled.resources,
        capability=assembled.capability,
        **residency([stitched.report], fused.targets),
        features=narrow.features,
        variants={
            target.name: target.cpu if job.kind.has_capabilities else target.features
            for target in fused.targets
            if target is not narrow
        },
        signature=signature,
        state=options.state,
        dims=open_dims_of(signature, options.dims, imported.dims),
        calling=imported.calling,
        report=stitched.report,
        iree_seconds=seconds_of_iree(stitched.report, fused.targets[0]),
        plan=stitched.plan,
        launches=_read_launches(job, fused, finished, signature) if stitched.report.kernels else None,
        iree_flags=finished.flags,
        notes=(*imported.notes, *fused.notes, *assembled.notes, *notes),
        seconds=job.seconds,
    )
    return Compiled(module=finished.module, parameters=parameters, metadata=metadata)


def _read_launches(
    job: Job, fused: Fused, finished: Finished, signature: Signature | None
) -> LaunchPlan | None:
    path = job.folder / LAUNCHES
    if signature is None or not path.exists():
        return None
    images = _find_images(job, fused, finished.module.read_bytes()) if job.kind.assembles else []
    return plan_launches(json.loads(path.read_text()), signature, images=images)


def _find_images(job: Job, fused: Fused, module: bytes) -> list[CodeImage]:
    """Returns where the module has the code of GPU kernels, which it embeds as it is."""
    images = []
    for name, target in kernel_files(fused.targets).items():
        code = image_file(job.folder / name).read_bytes()
        capability = needed_capability(job.folder / name) or target.cpu
        images.append(CodeImage(capability, module.index(code), len(code)))
    return images


def with_unsigned_types(
    job: Job, imported: ImportedModel, signature: Signature, entry: str | None
) -> Signature:
    """Returns the signature with the unsigned types of a model in MLIR. IREE's interface has no signs."""
    if imported.signature is not None or not _MAY_BE_UNSIGNED.search(imported.source):
        return signature
    given = job.iree.signature(imported.source, entry)

    def signed(specs: tuple[TensorSpec, ...], models: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
        if len(specs) != len(models):
            return specs
        return tuple(
            replace(spec, dtype=model.dtype) if model.dtype == f"u{spec.dtype}" else spec
            for spec, model in zip(specs, models, strict=True)
        )

    if given is None:
        return signature
    return Signature(signed(signature.inputs, given.inputs), signed(signature.outputs, given.outputs))


def with_names_of_jax(
    job: Job, imported: ImportedModel, signature: Signature, entry: str | None
) -> Signature:
    """Returns the signature with the names that JAX wrote into the text, if each input or output has one of its own."""
    if imported.signature is not None or b"jax." not in imported.source:
        return signature

    def renamed(specs: tuple[TensorSpec, ...], names: Sequence[str]) -> tuple[TensorSpec, ...]:
        if len(set(names) - {""}) != len(specs):
            return specs
        return tuple(replace(spec, name=name) for spec, name in zip(specs, names, strict=True))

    inputs, outputs = job.iree.names(imported.source, entry)
    return Signature(renamed(signature.inputs, inputs), renamed(signature.outputs, outputs))


def residency(reports: Sequence[Report], targets: Sequence[Target]) -> dict[str, Any]:
    """Returns the residency requirements of kernels whose workgroups wait for each other.

    All workgroups of such a kernel must be resident at once.
    """
    workgroups = [
        kernel.workgroups for report in reports for kernel in report.kernels if kernel.has_grid_barrier
    ]
    if not workgroups:
        return {}
    return {
        "multiprocessors": min(max(workgroups), *(target.gpu.guaranteed_sms for target in targets)),
        "multiprocessor_threads": min(target.gpu.threads_per_sm for target in targets),
        "multiprocessor_shared_bytes": min(target.gpu.shared_bytes_per_sm for target in targets),
    }
