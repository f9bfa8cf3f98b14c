"""Compiles one module for several shapes of a dynamic model.

Each shape goes through all stages up to the fusion by itself, as a static model. The modules are then joined
(`iree.merging`), and IREE's back end compiles them together with the dynamic one, which serves all other shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.api.assemble import Assembled, assemble_kernels
from tilewright.api.describe import Compiled, describe, residency, with_names_of_jax
from tilewright.api.finish import Finished
from tilewright.api.front import Preprocessed, preprocess
from tilewright.api.fuse import Fused, fuse
from tilewright.api.job import Job
from tilewright.errors import CompileError
from tilewright.frontends import ImportedModel
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING, without_data_tiling
from tilewright.iree.merging import ShapeModule, merge_shapes
from tilewright.records.dims import Sizes, open_axes, signature_inputs
from tilewright.records.signature import Signature
from tilewright.runtime.metadata import ShapeReport
from tilewright.runtime.state import check_in_place
from tilewright.runtime.stored import join_archives
from tilewright.worker.process import lend_worker

_SEPARATE = "--iree-hal-link-executables=false"
"""Keeps IREE from linking the kernels of all shapes together, because those of two shapes may have the same names."""


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """What a shape became."""

    sizes: Sizes
    front: Preprocessed
    fused: Fused
    assembled: Assembled
    parameters: Mapping[str, Path]


def model_signature(job: Job, imported: ImportedModel) -> Signature | None:
    """Returns the signature of a model before it is compiled; None if it is not known."""
    if imported.signature is not None:
        return imported.signature
    entry = job.options.entry or imported.entry
    signature = job.iree.signature(imported.source, entry)
    return with_names_of_jax(job, imported, signature, entry) if signature is not None else None


def compile_shapes(job: Job, imported: ImportedModel, shapes: Sequence[Sizes]) -> Compiled:
    """Compiles a dynamic model to a module with kernels for each shape. Raises the errors of the stages."""
    signature = model_signature(job, imported)
    assert signature is not None and imported.again is not None, "a model without open dims has no shapes"
    if job.options.plan is not None:
        raise CompileError(
            "a plan is for one shape, and several are built", hint="build one shape with dims={name: size}"
        )
    front = preprocess(job, imported)
    fused = fuse(job, front)
    built: list[_Shape] = []
    for number, sizes in enumerate(shapes):
        built.append(_build(job, imported, sizes, number, threads=built[0].fused.threads if built else None))
    parameters, renamed = join_archives(
        [front.parameters, *(shape.parameters for shape in built)], job.folder
    )
    axes = open_axes(signature_inputs(signature))
    modules = [
        ShapeModule(
            _with_names(shape.fused.stitched.text, names),
            [(axis.input, axis.axis, shape.sizes[axis.dim]) for axis in axes],
        )
        for shape, names in zip(built, renamed[1:], strict=True)
    ]
    finished = _finish(job, front, fused, modules, signature)
    settled = replace(
        fused, threads=built[0].fused.threads, targets=built[0].fused.targets, notes=_notes(fused, built)
    )
    compiled = describe(job, front, settled, built[0].assembled, finished, parameters)
    return replace(
        compiled,
        metadata=replace(
            compiled.metadata,
            shapes=tuple(ShapeReport(shape.sizes, shape.fused.stitched.report) for shape in built),
            resources={name: each for shape in built for name, each in shape.assembled.resources.items()},
            **residency([shape.fused.stitched.report for shape in built], settled.targets),
        ),
    )


def _build(job: Job, imported: ImportedModel, sizes: Sizes, number: int, *, threads: int | None) -> _Shape:
    """Runs the stages up to the fusion for one shape, in a folder of its own."""
    assert imported.again is not None
    folder = job.folder / f"shape{number}"
    folder.mkdir()
    own = replace(
        job.in_folder(folder),
        threads=job.threads if threads is None else (threads,),
        seconds={},
    )
    with own.step("import", f"shape {number}: importing the model"):
        static = imported.again(sizes, own.iree)
    front = preprocess(own, static)
    fused = fuse(own, front)
    assembled = assemble_kernels(own, fused)
    with own.step("weights"):
        parameters = fused.stitched.stored.write(front.parameters, folder)
    for name, seconds in own.seconds.items():
        job.seconds[name] = round(job.seconds.get(name, 0.0) + seconds, 4)
    return _Shape(sizes=sizes, front=front, fused=fused, assembled=assembled, parameters=parameters)


def _with_names(text: str, renamed: Mapping[tuple[str, str], str]) -> str:
    """Returns a module that reads parameters by their new names."""
    for (scope, name), new in renamed.items():
        reference = '#stream.parameter.named<"{}"::"{}">'
        text = text.replace(reference.format(scope, name), reference.format(scope, new))
    return text


def _finish(
    job: Job, front: Preprocessed, fused: Fused, modules: Sequence[ShapeModule], signature: Signature
) -> Finished:
    """Joins the modules and compiles them without data tiling, which IREE gets wrong for dynamic shapes."""
    entry = job.options.entry or front.imported.entry or next(iter(job.iree.functions(front.imported.source)))
    flags = [flag for flag in job.iree_flags if flag != DATA_TILING]
    with lend_worker(job.folder, deadline=job.deadline, is_shared=False) as worker:
        iree = IreeCompiler(worker, process_flags=[_SEPARATE])
        with job.step("iree_back", "IREE: to the module"):
            merged = merge_shapes(iree, fused.stitched.text, modules, entry=entry)
            module = iree.resume(merged, "preprocessing", flags=flags, name=front.imported.name)
        if job.options.state:
            with job.step("state"):
                stream = iree.resume(merged, "preprocessing", stop="stream", flags=flags).decode()
                for number in range(len(modules)):
                    check_in_place(stream, f"shape{number}_{entry}", job.options.state, signature)
    path = job.folder / "model.vmfb"
    path.write_bytes(module)
    reason = without_data_tiling(front.text) if DATA_TILING in job.iree_flags else None
    notes = (f"data tiling is off, because {reason}",) if reason else ()
    return Finished(module=path, stitched=fused.stitched, flags=tuple(flags), notes=notes)


def _notes(fused: Fused, built: Sequence[_Shape]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*fused.notes, *(note for shape in built for note in shape.fused.notes)]))
