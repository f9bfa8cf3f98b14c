"""What every stage of one compilation is given: what the user chose, the compilers, and where things are noted."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tilewright.errors import OutputError
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.flags import iree_flags
from tilewright.records.options import CompileOptions
from tilewright.records.targets import Target, TargetChoice
from tilewright.system.deadline import Deadline
from tilewright.worker.process import Worker

Progress = Callable[[str], None]
"""Called with the name of every step."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One compilation."""

    options: CompileOptions
    choice: TargetChoice
    """The target as the user named it."""
    targets: tuple[Target, ...]
    """The targets that it names, for as many threads as the program may use."""
    threads: tuple[int, ...]
    """Numbers of threads that the program may be compiled for, fewest first."""
    folder: Path
    """Where the stages write their files."""
    worker: Worker
    """The process in which the compilers run."""
    deadline: Deadline
    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    """What each step took; the steps fill it."""

    @property
    def is_for_gpu(self) -> bool:
        return self.targets[0].backend == "cuda"

    @cached_property
    def iree(self) -> IreeCompiler:
        return IreeCompiler(self.worker)

    @cached_property
    def iree_flags(self) -> list[str]:
        """Flags for IREE's own kernels. They have no variants, so they are for the narrowest target."""
        return iree_flags(narrowest(self.targets), host=self.choice == "cpu", extra=self.options.iree_flags)

    @contextmanager
    def step(self, name: str, progress: str | None = None) -> Iterator[None]:
        """Reports a step, and notes the wall time that its block takes."""
        if progress is not None:
            self.progress(progress)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - started, 4)

    def dump(self, name: str, data: bytes) -> None:
        """Writes an intermediate form to the user's folder, if there is one."""
        if self.options.dump_dir is not None:
            (self.options.dump_dir / name).write_bytes(data)

    def dump_file(self, source: Path) -> None:
        """Copies a file to the user's folder, if there are both."""
        if self.options.dump_dir is not None and source.exists():
            shutil.copyfile(source, self.options.dump_dir / source.name)


def make_dump_folder(folder: Path | None) -> None:
    """Makes the folder for intermediate forms; raises `OutputError` where that is not possible."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot be made ({error.strerror})", where=str(folder)) from None


def narrowest(targets: Sequence[Target]) -> Target:
    """The target that every processor of interest has: the first of several GPUs, the last of several CPUs."""
    return targets[0] if targets[0].backend == "cuda" else targets[-1]
