"""Runs a compilation: looks it up in the cache, or lends it a worker and a folder, and stores what it made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.progress import Progress, Steps
from tilewright.cache.key import Request
from tilewright.cache.use import CacheUse
from tilewright.errors import OutputError, temporary_files
from tilewright.frontends import Model
from tilewright.records.dims import Dim, Sizes
from tilewright.records.options import CompileOptions
from tilewright.records.targets import Target, TargetChoice, resolve_targets
from tilewright.runtime.again import Again
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.program import Program
from tilewright.runtime.shapes import Shapes
from tilewright.system.deadline import Deadline
from tilewright.system.workfolder import WorkFolder

if TYPE_CHECKING:  # a program from the cache needs none of what compiles one
    from tilewright.api.describe import Compiled
    from tilewright.api.job import Job
    from tilewright.worker.process import Worker

Stages = Callable[["Job"], "Compiled"]
"""What a compilation does."""
_IMPORTS = ("iree.compiler.api.ctypes_dl", "tilewright.frontends.onnx_importer", "tilewright.api.stitch")
"""Modules that a compilation needs in the worker, and that take half a second to import."""
MakeShapes = Callable[[Metadata], Shapes | None]
"""Makes the shapes of a program with this metadata."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is compiled, and how: the arguments of `tilewright.compile`, with their defaults."""

    options: CompileOptions
    model: Model
    target: TargetChoice
    threads: tuple[int, ...]
    """Numbers of threads that the program may be compiled for, in ascending order."""
    targets: tuple[Target, ...]
    """The targets for the most threads."""

    @property
    def request(self) -> Request:
        targets = {threads: resolve_targets(self.target, threads=threads) for threads in self.threads}
        return Request(model=self.model, options=self.options, targets=targets, is_host=self.target == "cpu")

    def with_dims(self, dims: Mapping[str, Dim], **changes: Any) -> Setting:
        """Returns a setting with other dims, and other `changes` of the options."""
        return replace(self, options=replace(self.options, dims=dims, **changes))

    def with_sizes(self, sizes: Sizes) -> Setting:
        """Returns a setting with sizes for open dims."""
        fixed = {name: Dim(size, size) for name, size in sizes.items()}
        return self.with_dims({**fixed_only(self.options.dims), **fixed})


def fixed_only(dims: Mapping[str, Dim]) -> dict[str, Dim]:
    return {name: dim for name, dim in dims.items() if dim.fixed is not None}


def job_of(
    setting: Setting,
    folder: Path,
    worker: Worker,
    deadline: Deadline,
    *,
    progress: Progress = lambda _: None,
) -> Job:
    """Returns the context in which stages compile a setting."""
    from tilewright.api.job import Job

    return Job(
        options=setting.options,
        choice=setting.target,
        targets=setting.targets,
        threads=setting.threads,
        folder=folder,
        worker=worker,
        deadline=deadline,
        progress=progress,
    )


def _make_dump_folder(folder: Path | None) -> None:
    """Makes the folder for intermediate forms; raises `OutputError` if that fails."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot be made ({error.strerror})", where=str(folder)) from None


def run(
    setting: Setting,
    stages: Stages,
    cache: CacheUse,
    *,
    deadline: Deadline,
    progress: Progress | None = None,
    in_background: bool = False,
    make_shapes: Callable[[WorkFolder | None], MakeShapes] = lambda _: lambda _: None,
    again: Again[Program] | None = None,
) -> Program:
    """Returns the program, not loaded.

    `make_shapes` is given its folder, or None if it came from the cache, and returns what makes its shapes.
    `again` compiles it in other ways.
    """
    options = setting.options
    steps = Steps(progress, deadline)
    if (stored := cache.find()) is not None:
        steps.report("loading from the compilation cache")
        return Program(
            module=stored.module,
            parameters=stored.parameters,
            metadata=stored.metadata,
            sources=options.parameters.values(),
            cache_notes=cache.notes,
            make_shapes=make_shapes(None),
            again=again,
        )
    from tilewright.worker.process import lend_worker

    with temporary_files():
        directory = WorkFolder("compile")
        try:
            _make_dump_folder(options.dump_dir)
            # The process starts while this one reads the model.
            lent = lend_worker(
                directory.path, deadline=deadline, is_shared=not in_background, imports=_IMPORTS
            )
            with lent as worker, steps.watch(worker.doing):
                compiled = stages(job_of(setting, directory.path, worker, deadline, progress=steps.report))
            reports = [compiled.metadata.report, *(shape.report for shape in compiled.metadata.shapes)]
            is_recovered = worker.deaths > 0 or any(report.fallbacks for report in reports)
            cache.keep(compiled.module, compiled.parameters, compiled.metadata, is_recovered=is_recovered)
            return Program(
                module=compiled.module,
                parameters=compiled.parameters,
                metadata=compiled.metadata,
                keep_alive=directory,
                sources=options.parameters.values(),
                cache_notes=cache.notes,
                make_shapes=make_shapes(directory),
                again=again,
            )
        except BaseException:
            directory.cleanup()
            raise
