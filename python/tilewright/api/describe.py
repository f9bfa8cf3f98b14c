"""The last stages: store the weights in the layout that kernels read, and describe the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.api.assemble import Assembled
from tilewright.api.finish import Finished, to_stream
from tilewright.api.front import Preprocessed
from tilewright.api.fuse import Fused
from tilewright.api.job import Job, narrowest
from tilewright.frontends import ImportedModel
from tilewright.records.report import Report
from tilewright.records.signature import Signature, TensorSpec
from tilewright.records.targets import Target
from tilewright.records.threads import seconds_of_iree
from tilewright.runtime.interface import read_interface
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.state import check_in_place, check_state


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """Everything that a program consists of."""

    module: Path
    parameters: Mapping[str, Path]
    metadata: Metadata


def store_weights(job: Job, front: Preprocessed, finished: Finished) -> dict[str, Path]:
    """Writes the program's parameter files and removes the imported ones that they replace."""
    job.progress("storing weights in the layout that kernels read")
    with job.step("weights"):
        written = finished.stitched.stored.write(front.parameters, job.folder)
        for scope, path in front.parameters.items():
            if written[scope] != path and path.parent == job.folder:
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
    interface = read_interface(finished.module, entry=options.entry or imported.entry)
    signature = (
        imported.signature or interface.signature or job.iree.signature(imported.source, interface.entry)
    )
    if signature is not None:
        signature = _with_names_of_jax(job, imported, signature, interface.entry)
        signature.check_sizes()
    check_state(options.state, signature)
    if options.state and signature is not None:
        with job.step("state"):
            check_in_place(to_stream(job, front, finished), interface.entry, options.state, signature)
    narrow, stitched = narrowest(fused.targets), finished.stitched
    metadata = Metadata(
        target=narrow.name if job.is_for_gpu else ",".join(target.name for target in fused.targets),
        threads=fused.threads,
        entry=interface.entry,
        device="cuda" if job.is_for_gpu else "local",
        resources=assembled.resources,
        capability=assembled.capability,
        **_residency(stitched.report, fused.targets),
        features=narrow.features,
        variants={
            target.name: target.cpu if job.is_for_gpu else target.features
            for target in fused.targets
            if target is not narrow
        },
        signature=signature,
        state=options.state,
        calling=imported.calling,
        report=stitched.report,
        iree_seconds=seconds_of_iree(stitched.report, fused.targets[0]),
        plan=stitched.plan.to_json() if stitched.plan else None,
        iree_flags=finished.flags,
        notes=(*imported.notes, *fused.notes, *assembled.notes, *finished.notes),
        seconds=job.seconds,
    )
    return Compiled(module=finished.module, parameters=parameters, metadata=metadata)


def _with_names_of_jax(job: Job, imported: ImportedModel, signature: Signature, entry: str) -> Signature:
    """Returns the signature with the names that JAX wrote into the text, if each input or output has one of its own."""
    if imported.signature is not None or b"jax." not in imported.source:
        return signature

    def renamed(specs: tuple[TensorSpec, ...], names: Sequence[str]) -> tuple[TensorSpec, ...]:
        if len(set(names) - {""}) != len(specs):
            return specs
        return tuple(replace(spec, name=name) for spec, name in zip(specs, names, strict=True))

    inputs, outputs = job.iree.names(imported.source, entry)
    return Signature(renamed(signature.inputs, inputs), renamed(signature.outputs, outputs))


def _residency(report: Report, targets: Sequence[Target]) -> dict[str, int]:
    """Returns the residency requirements of kernels whose workgroups wait for each other.

    All workgroups of such a kernel must be resident at once.
    """
    workgroups = [kernel.workgroups for kernel in report.kernels if kernel.has_grid_barrier]
    if not workgroups:
        return {}
    return {
        "multiprocessors": min(max(workgroups), *(target.gpu.guaranteed_sms for target in targets)),
        "multiprocessor_threads": min(target.gpu.threads_per_sm for target in targets),
        "multiprocessor_shared_bytes": min(target.gpu.shared_bytes_per_sm for target in targets),
    }
