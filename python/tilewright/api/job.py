"""The context of one compilation, which every stage receives: options, compilers and the log of steps."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tilewright.api.progress import Progress
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.flags import iree_flags
from tilewright.records.kinds import MachineKind
from tilewright.records.options import CompileOptions
from tilewright.records.targets import Target, TargetChoice
from tilewright.system.deadline import Deadline
from tilewright.worker.process import Worker


@dataclass(frozen=True, kw_only=True)
class Job:
    """One compilation."""

    options: CompileOptions
    choice: TargetChoice
    """The target as the user named it."""
    targets: tuple[Target, ...]
    """The targets that it resolves to, for the most threads that the program may use."""
    threads: tuple[int, ...]
    """Numbers of threads that the program may be compiled for, in ascending order."""
    folder: Path
    """Folder for the files that the stages write."""
    worker: Worker
    """Process in which the compilers run."""
    deadline: Deadline
    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of each step, in seconds; the steps add to it."""

    @property
    def kind(self) -> MachineKind:
        return self.targets[0].kind

    @cached_property
    def iree(self) -> IreeCompiler:
        return IreeCompiler(self.worker)

    @cached_property
    def iree_flags(self) -> list[str]:
        """Returns the flags for IREE's own kernels, which have no variants and so are for the narrowest target."""
        return iree_flags(narrowest(self.targets), host=self.choice == "cpu", extra=self.options.iree_flags)

    def in_folder(self, folder: Path) -> Job:
        """Returns the job with another folder for its files, and no dump folder."""
        return replace(self, folder=folder, options=replace(self.options, dump_dir=None))

    @contextmanager
    def step(self, name: str, progress: str | None = None) -> Iterator[None]:
        """Reports a step and records the wall time of its block."""
        if progress is not None:
            self.progress(progress)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - started, 4)

    def dump(self, name: str, data: bytes) -> None:
        """Writes an intermediate form to the dump folder, if there is one."""
        if self.options.dump_dir is not None:
            (self.options.dump_dir / name).write_bytes(data)

    def dump_file(self, source: Path) -> None:
        """Copies a file to the dump folder, if both exist."""
        if self.options.dump_dir is not None and source.exists():
            shutil.copyfile(source, self.options.dump_dir / source.name)


def narrowest(targets: Sequence[Target]) -> Target:
    """Returns the target whose features all machines have."""
    return targets[0] if targets[0].kind.has_capabilities else targets[-1]
