"""The stages of a compilation, in order: each takes frozen records of earlier stages and returns one.

    tilewright.compile        checks the options (`compilation`)
    -> import_user_model      ONNX or MLIR becomes MLIR that IREE takes; weights become an archive (`front`)
    -> preprocess             IREE lowers that to linalg on tensors, its preprocessing phase (`front`)
    -> fuse                   our passes plan kernels, compile them and splice them in (`fuse`, `stitch`)
    -> assemble_kernels       for a GPU, NVIDIA's assembler checks them and reports their registers (`assemble`)
    -> finish                 IREE compiles the rest, and links all of it to `model.vmfb` (`finish`)
    -> store_weights          weights are stored in the layout that kernels read (`describe`)
    -> describe               the program's signature, target, plan and notes (`describe`)
    -> Program                the files and their description, to call or to save (`runtime.program`)

A step that fails raises a `TilewrightError`. A request that could only be fulfilled in part becomes a note.
"""

from __future__ import annotations

from tilewright.api.assemble import assemble_kernels
from tilewright.api.describe import Compiled, describe, store_weights
from tilewright.api.finish import finish
from tilewright.api.front import import_user_model, preprocess
from tilewright.api.fuse import fuse
from tilewright.api.job import Job
from tilewright.frontends import Model


def run_stages(job: Job, model: Model) -> Compiled:
    """Compiles a model to a `.vmfb`, its parameter files and its description."""
    imported = import_user_model(job, model)
    front = preprocess(job, imported)
    fused = fuse(job, front)
    assembled = assemble_kernels(job, fused)
    finished = finish(job, front, fused)
    parameters = store_weights(job, front, finished)
    return describe(job, front, fused, assembled, finished, parameters)
