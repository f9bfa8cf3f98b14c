"""The stages of a compilation, in order: each takes frozen records of earlier stages and returns one.

    tilewright.compile        checks the options (`compilation`)
    -> import_user_model      ONNX or MLIR becomes MLIR that IREE takes; weights become an archive (`front`)
    -> preprocess             IREE lowers that to linalg on tensors, its preprocessing phase (`front`)
    -> fuse                   our passes plan kernels, compile them and splice them in (`fuse`, `stitch`)
    -> assemble_kernels       for a GPU, NVIDIA's assembler checks them and reports their registers (`assemble`)
    -> finish                 IREE compiles the rest, and links all of it to `model.vmfb` (`finish`); it is left out for
                              programs that only run here (`undeployed`)
    -> store_weights          meanwhile, weights are stored in the layout that kernels read (`describe`)
    -> describe               the program's signature, target, plan and notes (`describe`)
    -> Program                the files and their description, to call or to save (`runtime.program`)

A dynamic model that is built ahead for several shapes goes through them once for each shape, and through the last ones
for all (`shapes`). A step that fails raises a `TilewrightError`. A request that could only be fulfilled in part
becomes a note.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tilewright.api.assemble import assemble_kernels
from tilewright.api.describe import Compiled, describe, store_weights, write_weights
from tilewright.api.finish import finish
from tilewright.api.front import preprocess
from tilewright.api.fuse import fuse
from tilewright.api.job import Job
from tilewright.api.shapes import compile_shapes, model_signature
from tilewright.api.undeployed import finish_for_here
from tilewright.frontends import ImportedModel
from tilewright.records.dims import ahead_shapes, open_axes, open_dims_of, signature_inputs


def run_stages(job: Job, imported: ImportedModel) -> Compiled:
    """Compiles an imported model to a `.vmfb`, its parameter files and its description."""
    if any(dim.ahead for dim in job.options.dims.values()):
        dims = open_dims_of(model_signature(job, imported), job.options.dims, imported.dims)
        if shapes := ahead_shapes(dims, list(dims)):
            return compile_shapes(job, imported, shapes)
    front = preprocess(job, imported)
    fused = fuse(job, front)
    if imported.is_dynamic and not fused.stitched.report.kernels:
        fused = replace(fused, notes=(*fused.notes, _note_on_dynamic_axes(imported)))
    with ThreadPoolExecutor(1) as threads:
        early = threads.submit(write_weights, job, front, fused.stitched)
        assembled = assemble_kernels(job, fused)
        here = None if job.options.deploy else finish_for_here(job, front, fused)
        finished = here or finish(job, front, fused)
        parameters = store_weights(job, front, fused, finished, early)
    return describe(job, front, fused, assembled, finished, parameters)


def _note_on_dynamic_axes(imported: ImportedModel) -> str:
    """Says why a model with dynamic axes has no kernel of ours."""
    assert imported.signature is not None
    position = open_axes(signature_inputs(imported.signature))[0].input
    return (
        f"all of this program is left to IREE, because it has dynamic axes ({imported.signature.inputs[position]}); "
        "give their sizes (dims=, --dims) for kernels of ours"
    )
