"""What a user may choose about a compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tilewright.errors import CompileError, TuningError
from tilewright.records.threads import Threads, thread_choices
from tilewright.system.cores import MOST_THREADS
from tilewright.system.deadline import checked_timeout
from tilewright.system.tuning_path import default_path

if TYPE_CHECKING:
    from tilewright.records.plan import Plan

NumericsMode: TypeAlias = Literal["default", "strict", "tf32"]
"""What kernels may do to numbers: "strict" rounds, accumulates and divides exactly as the model says; "tf32" lets
matmuls of f32 on GPUs multiply in tf32."""


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """Options of `tilewright.compile`, all with defaults."""

    threads: Threads | None = None
    """Threads that the program may use, None: one per core; or the numbers to choose from. The one that is predicted
    fastest is taken."""
    iree_flags: tuple[str, ...] = ()
    """More flags for IREE's compiler, as `iree-compile` takes them; they win over the defaults."""
    dump_dir: Path | None = None
    """Folder for every intermediate form."""
    plan: Plan | Path | None = None
    """A plan to carry out instead of making one."""
    strict: bool = False
    """Fail where ops would otherwise be left unfused or to IREE, because a pass of ours fails on them, or kernels left
    out, because IREE fails with them."""
    numerics: NumericsMode = "default"
    """What kernels may do to numbers; see docs/numerics.md."""
    grid_sync: bool = True
    """Whether kernels for GPUs may wait at barriers of the grid; see docs/cuda.md for what that asks of the device."""
    tuning: Path | None = field(default_factory=default_path)
    """The database of measured plans; None: no measurements are used."""
    entry: str | None = None
    """Which function is the program, for MLIR input with several."""
    parameters: Mapping[str, Path] = field(default_factory=dict)
    """Parameter archives (.irpa) that MLIR input refers to, by scope."""

    state: Mapping[str, str] = field(default_factory=dict)
    """Outputs that continue inputs in place, by name: `{"present": "past"}`; see docs/state.md."""

    timeout: float | None = None
    """Seconds that the compilation may take before it is ended with a `CompileTimeoutError`; None: no limit."""

    def __post_init__(self) -> None:
        checked_timeout(self.timeout)
        choices = thread_choices(self.threads if self.threads is not None else 1)
        if not choices or not 1 <= choices[0] <= choices[-1] <= MOST_THREADS:
            raise CompileError(
                f"threads={self.threads} is not possible",
                hint=f"IREE's CPU runtime takes 1 to {MOST_THREADS} threads",
            )
        if self.tuning is not None and self.tuning != default_path() and not self.tuning.is_file():
            raise TuningError("no such file", where=str(self.tuning), hint="`tilewright tune` makes one")
        if self.numerics not in get_args(NumericsMode):
            raise CompileError(
                f"numerics='{self.numerics}' is unknown", hint="choose 'default', 'strict' or 'tf32'"
            )
