"""What to do when a pass of ours fails: which kernel it failed on, and what the next attempt does without.

A kernel that a pass fails on is planned again as a kernel for each of its ops, and what fails even so is left to IREE.
Where nothing says which kernel it was, no ops are fused at first, and then IREE compiles all of the model. Pure
functions: `tilewright.api.stitch` makes the attempts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.errors import PassError

MOST_NAMED_FAILURES = 6
"""Attempts after failures on known kernels; each takes as long as planning and generating code for all of the model."""


@dataclass(frozen=True)
class PlannedPart:
    """What tells a part of a kernel: the name of the kernel, its ops by their place in the plan, and where they are in
    the model."""

    kernel: str
    ops: frozenset[int]
    locations: frozenset[str] = frozenset()
    is_alone: bool = False
    """Its kernel has no other op than its own one."""


@dataclass(frozen=True)
class Restrictions:
    """What the next plan may not do."""

    fuse: bool = True
    """Whether ops may share kernels at all."""
    unfused: frozenset[int] = frozenset()
    """Ops, by their place in the plan, that share no kernel."""
    left: frozenset[int] = frozenset()
    """Ops that stay with IREE."""

    def options(self) -> dict[str, str | list[str]]:
        """As options of our pipelines."""
        return {
            "fuse": "" if self.fuse else "false",
            "unfused": [str(op) for op in sorted(self.unfused)],
            "left": [str(op) for op in sorted(self.left)],
        }


@dataclass(frozen=True)
class Fallback:
    """The next attempt, and what a user is told about it."""

    restrictions: Restrictions | None
    """None: IREE compiles all of the model."""
    note: str


def planned_parts(plan: Mapping[str, Any], report: Mapping[str, Any]) -> tuple[PlannedPart, ...]:
    """The parts of a plan's kernels, as JSON; the report, which knows where ops are, may be missing ({})."""
    locations = {
        op["id"]: frozenset(_names(op["loc"])) for kernel in report.get("kernels", ()) for op in kernel["ops"]
    }
    found = []
    for kernel in plan.get("kernels", ()):
        number = sum(len(part["ops"]) for part in kernel["groups"])
        for part in kernel["groups"]:
            ops = frozenset(op["id"] for op in part["ops"])
            where = frozenset[str]().union(*(locations.get(op, frozenset()) for op in ops))
            found.append(PlannedPart(kernel["name"], ops, where, is_alone=number == 1))
    return tuple(found)


def suspects(error: PassError, parts: Sequence[PlannedPart]) -> tuple[PlannedPart, ...]:
    """The parts that a failure may be about: those of the kernels that it names, and with an op at its location.

    Of a process that died, `details` is what it printed, and LLVM prints which function it was at.
    """
    running = re.findall(r"^\d+\.\s+Running pass .*", error.details, re.MULTILINE)
    words = set(re.findall(r"[\w$]+", "\n".join([error.message, *running])))
    named = tuple(part for part in parts if part.kernel in words)
    near = tuple(part for part in named or parts if error.location and error.location in part.locations)
    return near or named


def next_attempt(
    error: PassError, parts: Sequence[PlannedPart], restrictions: Restrictions, *, failures: int
) -> Fallback:
    """What to do after a failure under `restrictions`, the last of so many."""
    why = f"because a pass of ours failed on {{}} ({_cause(error)})"
    found = suspects(error, parts) if failures <= MOST_NAMED_FAILURES else ()
    fused = frozenset[int]().union(*(part.ops for part in found if _is_fused(part, restrictions)))
    single = frozenset[int]().union(*(part.ops for part in found if not _is_fused(part, restrictions)))
    names = ", ".join(dict.fromkeys(f"kernel {part.kernel}" for part in found))
    if fused:
        # What was alone already may fail because of its neighbour; it gets another chance.
        changed = replace(restrictions, unfused=restrictions.unfused | fused)
        return Fallback(changed, f"{_ops(fused)} not fused, {why.format(names)}")
    if single:
        changed = replace(restrictions, left=restrictions.left | single)
        return Fallback(changed, f"{_ops(single)} left to IREE, {why.format(names)}")
    if restrictions.fuse:
        unknown = why.format("a kernel that is not known")
        return Fallback(replace(restrictions, fuse=False), f"no ops are fused, {unknown}")
    return Fallback(None, f"all of the model is left to IREE, {why.format('it')}")


def _is_fused(part: PlannedPart, restrictions: Restrictions) -> bool:
    return not part.is_alone and restrictions.fuse and not part.ops <= restrictions.unfused


def _cause(error: PassError) -> str:
    return f"{error.location}: {error.message}" if error.location else error.message


def _ops(ops: frozenset[int]) -> str:
    numbers = ", ".join(str(op) for op in sorted(ops)[:8]) + (", ..." if len(ops) > 8 else "")
    return f"op {numbers} is" if len(ops) == 1 else f"ops {numbers} are"


def _names(location: str) -> list[str]:
    """Every name and file position in a printed MLIR location."""
    return [name + place for name, place in re.findall(r'"([^"]+)"((?::\d+)*)', location)]
