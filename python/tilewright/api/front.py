"""The first stages: import a model and run IREE up to its preprocessing phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.api.job import Job
from tilewright.frontends import ImportedModel, Model, import_model
from tilewright.frontends.triangles import mark_triangles
from tilewright.iree.recursion import check_calls
from tilewright.runtime.state import check_state


@dataclass(frozen=True, kw_only=True)
class Preprocessed:
    """A model at IREE's preprocessing phase: linalg on tensors."""

    imported: ImportedModel
    text: str
    parameters: Mapping[str, Path]
    """Parameter archives by scope: those of the import and the user's own."""


def import_user_model(job: Job, model: Model) -> ImportedModel:
    """Imports a model of any kind; its weights will be written to an archive in the job's folder."""
    with job.step("import", "importing the model"):
        imported = import_model(
            model,
            examples=job.options.example_inputs,
            compiler=job.iree,
            directory=job.folder,
            dims=job.options.dims,
            entry=job.options.entry,
        )
    if imported.signature is not None:
        check_state(job.options.state, imported.signature)
    job.dump("1-input.mlir", (imported.listing or "").encode() or imported.source)
    return imported


def preprocess(job: Job, imported: ImportedModel) -> Preprocessed:
    """Runs IREE on the imported model up to its preprocessing phase."""
    with job.step("iree_front", "IREE: to the preprocessing phase"):
        text = job.iree.compile_to(
            imported.source,
            "preprocessing",
            flags=job.iree_flags,
            name=imported.name,
            is_static_onnx=imported.is_static_onnx,
            meanwhile=imported.archives.write,
        )
    check_calls(text)
    parameters = {**imported.parameters, **job.options.parameters}
    text = mark_triangles(text, parameters)
    job.dump("2-preprocessing.mlir", text.encode())
    return Preprocessed(imported=imported, text=text, parameters=parameters)
