"""Options of a compilation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from tilewright.errors import CompileError, TuningError
from tilewright.records.dims import Dim
from tilewright.records.threads import Threads, thread_choices
from tilewright.system.cache_path import default_cache
from tilewright.system.cores import MOST_THREADS
from tilewright.system.deadline import checked_timeout
from tilewright.system.tuning_path import default_path

if TYPE_CHECKING:
    from tilewright.ir.rewriting import Pass
    from tilewright.records.plan import Plan

NumericsMode: TypeAlias = Literal["default", "strict", "tf32"]
"""How freely kernels may compute: "strict" rounds, accumulates and divides exactly as in the model; "tf32" allows tf32
for f32 matmuls on GPUs."""

Policy: TypeAlias = Literal[
    "greedy",
    "unfused",
    "xla",
    "fusionstitching",
    "welder",
    "powerfusion",
    "souffle",
    "chimera",
    "unified",
    "exhaustive",
]
"""How plans are made: "greedy" grows fusion groups as long as predictions improve; "unfused" gives every op a kernel of
its own; "xla" to "chimera" are the algorithms of the systems of these names; "unified" takes the best of all these
plans and improves it by a search; "exhaustive" tries every choice of forms and
every partition of at most ten ops into kernels."""

Stage: TypeAlias = Literal["normalized", "planned", "programs"]
"""A point of our pipelines at which passes of the user run: before planning, on the planned module before its plan is
verified, and on tile programs."""
UserPass: TypeAlias = "Pass | str | Callable[[Any], object]"
"""A pass of the user: written in Python, or a textual pipeline for a module."""


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """Options of `tilewright.compile`; all have defaults."""

    threads: Threads | None = None
    """Most threads of the program (None: one per core), or the numbers to choose from; the number predicted fastest is
    used."""
    iree_flags: tuple[str, ...] = ()
    """Additional flags for IREE's compiler, in the form that `iree-compile` takes; they override the defaults."""
    dump_dir: Path | None = None
    """Folder to which every intermediate form is written; None: nothing is written."""
    plan: Plan | Path | None = None
    """A plan to carry out; None: the compiler makes one."""
    strict: bool = False
    """True if the compilation fails instead of leaving ops unfused, or to IREE, because one of our passes fails on
    them, and instead of dropping kernels because IREE fails with them."""
    numerics: NumericsMode = "default"
    """How freely kernels may compute; see docs/guide/numerics.md."""
    policy: Policy = "greedy"
    """How the compiler makes a plan: docs/design/planner.md. Measured plans are used with the default only."""
    plan_seconds: float = 2.0
    """Seconds that the search of the policy "unified" may take, about; 0: it takes the best plan of the other policies
    as it is. The search ends after a number of groups, so plans do not depend on the machine that makes them."""
    grid_sync: bool = True
    """True if GPU kernels may synchronise the whole grid; docs/guide/gpu.md says what this requires of the device."""
    tuning: Path | None = field(default_factory=default_path)
    """The database of measured plans; None: no measurements are used."""
    entry: str | None = None
    """Name of the function that is the program, for MLIR input with several functions."""
    parameters: Mapping[str, Path] = field(default_factory=dict)
    """Parameter archives (.irpa) that MLIR input refers to, by scope."""

    state: Mapping[str, str] = field(default_factory=dict)
    """Outputs that update inputs in place, by name: `{"present": "past"}`; see docs/guide/state.md."""

    dims: Mapping[str, Dim] = field(default_factory=dict)
    """What is known of dims that the model leaves open, by name; see docs/guide/shapes.md."""

    passes: Mapping[Stage, Sequence[UserPass]] = field(default_factory=dict)
    """Passes of the user by stage; see docs/guide/python-ir.md."""
    example_inputs: Any = None
    """Inputs to export a module of PyTorch with: a sequence of arguments, or a mapping of keyword arguments."""
    cache: Path | None = field(default_factory=default_cache)
    """Folder of the compilation cache; None: programs are neither looked up nor stored."""

    timeout: float | None = None
    """Seconds after which the compilation ends with a `CompileTimeoutError`; None: no limit."""

    deploy: bool = True
    """False if a module for IREE is made only when it is needed, as for a program that only runs in this process."""

    verify: bool = False
    """True if the program is run once and compared with the model in float64."""

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
        for stage in self.passes:
            if stage not in get_args(Stage):
                raise CompileError(
                    f"passes for the stage '{stage}', which is unknown",
                    hint=f"choose one of {', '.join(get_args(Stage))}",
                )
        if self.numerics not in get_args(NumericsMode):
            raise CompileError(
                f"numerics='{self.numerics}' is unknown", hint="choose 'default', 'strict' or 'tf32'"
            )
        if self.policy not in get_args(Policy):
            raise CompileError(
                f"policy='{self.policy}' is unknown",
                hint=f"choose one of {', '.join(map(repr, get_args(Policy)))}",
            )
        if not 0 <= self.plan_seconds < math.inf:
            raise CompileError(
                f"plan_seconds={self.plan_seconds} is not possible",
                hint="it is a number of seconds, at least 0",
            )
