"""Compiles a dynamic model again, for the shapes that its program is called with (`runtime.shapes`)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.api.describe import Compiled
from tilewright.api.front import import_user_model, preprocess
from tilewright.api.job import Job
from tilewright.api.running import Setting, job_of, run
from tilewright.api.shapes import compile_shapes, model_signature
from tilewright.api.stages import run_stages
from tilewright.cache.use import CacheUse
from tilewright.errors import CompileError, temporary_files
from tilewright.frontends import ImportedModel
from tilewright.iree.rows import prove_rows
from tilewright.records.dims import Sizes, open_axes, signature_inputs
from tilewright.runtime.buckets import WHOLE, Rows
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.program import Program
from tilewright.runtime.shapes import Shapes
from tilewright.system.deadline import Deadline
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import lend_worker


class Recompilation:
    """Compiles the model that a program was compiled from, as it was then.

    The first import is kept: what it reads of the model's files is not read again. A program that came from the cache
    has no import yet; the model is then imported at the first need, unless it has changed meanwhile.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        model_key: str | None,
        imported: ImportedModel | None,
        folder: WorkFolder | None,
    ) -> None:
        self._setting = setting.with_dims(
            setting.options.dims,
            dump_dir=None,
            cache=setting.options.cache if model_key is not None else None,
        )
        self._model_key = model_key
        self._imported, self._folder = imported, folder
        self._importing = threading.Lock()
        self._parameters = _stamps(setting.options.parameters)

    def one(self, sizes: Sizes, *, background_deadline: Deadline | None = None) -> Program:
        """Returns a program for one shape, not loaded yet."""
        setting = self._setting.with_sizes(sizes)

        def stages(job: Job) -> Compiled:
            with job.step("import", "importing the model"):
                static = self._fixed(job, sizes)
            compiled = run_stages(job, static)
            self._check_parameters()
            return compiled

        cache = CacheUse(setting.request, model_key=self._model_key)
        deadline = background_deadline or Deadline(self._setting.options.timeout)
        in_background = background_deadline is not None
        return run(setting, stages, cache, deadline=deadline, in_background=in_background)

    def rows(self, sizes: Sizes, larger: Sizes, *, background_deadline: Deadline) -> Rows | str:
        """Returns where the rows are if a program for `larger` computes a call with `sizes`; otherwise why not."""
        setting = self._setting.with_sizes(larger)
        with temporary_files():
            folder = WorkFolder("compile")
            try:
                with lend_worker(folder.path, deadline=background_deadline, is_shared=False) as worker:
                    job = job_of(setting, folder.path, worker, background_deadline)
                    return self._prove(job, sizes, larger)
            finally:
                folder.cleanup()

    def _prove(self, job: Job, sizes: Sizes, larger: Sizes) -> Rows | str:
        models = [self._fixed(job, each) for each in (sizes, larger)]
        assert self._imported is not None
        signature = model_signature(job, self._imported)
        if signature is None:
            return "the signature of the model is not known"
        [name] = [name for name in sizes if sizes[name] != larger[name]]
        axes = [WHOLE] * len(signature.inputs)
        for axis in open_axes(signature_inputs(signature)):
            if axis.dim == name:
                if axes[axis.input] != WHOLE:
                    return f"'{name}' is two dims of {signature.inputs[axis.input].name}"
                axes[axis.input] = axis.axis
        entry = job.options.entry or self._imported.entry or next(iter(job.iree.functions(models[0].source)))
        small, large = (preprocess(job, model).text for model in models)
        found = prove_rows(job.iree, small, large, entry=entry, axes=axes)
        return found if isinstance(found, str) else Rows(inputs=tuple(axes), outputs=tuple(found))

    def all(self, shapes: Sequence[Sizes]) -> Program:
        """Returns one program for several shapes, and for all others without kernels of ours."""

        def stages(job: Job) -> Compiled:
            with self._importing:
                imported = self._first_import(job)
                compiled = compile_shapes(job, imported, shapes)
            self._check_parameters()
            return compiled

        cache = CacheUse(self._setting.request, shapes=shapes, model_key=self._model_key)
        return run(self._setting, stages, cache, deadline=Deadline(self._setting.options.timeout))

    def _fixed(self, job: Job, sizes: Sizes) -> ImportedModel:
        """Imports the model for a shape; one thread at a time does so, because PyTorch's objects are shared."""
        with self._importing:
            imported = self._first_import(job)
            assert imported.again is not None
            return imported.again(sizes, job.iree)

    def _first_import(self, job: Job) -> ImportedModel:
        if self._imported is None:
            self._folder = WorkFolder("compile")
            self._imported = self._import_unchanged(job, self._folder.path)
        return self._imported

    def _import_unchanged(self, job: Job, folder: Path) -> ImportedModel:
        """Imports the model; raises `CompileError` if it is no longer the one that the program was compiled from."""
        self._check_model()
        # The job's own options have sizes for a shape.
        whole = replace(job.in_folder(folder), options=self._setting.options)
        imported = import_user_model(whole, self._setting.model)
        self._check_model()
        return imported

    def _check_model(self) -> None:
        if CacheUse(self._setting.request).current_key() != self._model_key:
            raise CompileError("the model has changed since it was compiled", hint="compile it again")

    def _check_parameters(self) -> None:
        if _stamps(self._setting.options.parameters) != self._parameters:
            raise CompileError(
                "a parameter file has changed since the model was compiled", hint="compile it again"
            )

    def shapes(self, metadata: Metadata) -> Shapes | None:
        """Returns the shapes of the program that has this metadata; None if its shapes are fixed."""
        if not metadata.dims:
            return None
        ahead = [dict(shape.sizes) for shape in metadata.shapes]
        return Shapes(self, names=list(metadata.dims), dims=metadata.dims, ahead=ahead)


def _stamps(files: Mapping[str, Path]) -> dict[str, tuple[int, int, int]]:
    """Returns the state of parameter files, which every change of their content changes."""
    found = {}
    for scope, path in files.items():
        try:
            status = path.stat()
            found[scope] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        except OSError:
            found[scope] = (-1, -1, -1)
    return found
