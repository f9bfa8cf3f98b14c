"""Fallback after a failed pass: finds the kernel that it failed on and decides what the next attempt leaves out.

The failed kernel is planned again as one kernel per op, and IREE compiles whatever still fails. If the failure names no
kernel, the next attempt fuses no ops, and the last one leaves the whole model to IREE. The functions are pure;
`tilewright.api.stitch` makes the attempts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.errors import PassError

MOST_NAMED_FAILURES = 6
"""Maximum attempts after failures on known kernels; each plans and generates code for the whole model again."""


@dataclass(frozen=True)
class PlannedPart:
    """Identity of one fusion group of a kernel: the kernel's name, its ops by position in the plan, and their locations
    in the model."""

    kernel: str
    ops: frozenset[int]
    locations: frozenset[str] = frozenset()
    is_alone: bool = False
    """True if the kernel has no other op."""


@dataclass(frozen=True)
class Restrictions:
    """Restrictions on the next plan."""

    fuse: bool = True
    """True if ops may share kernels at all."""
    unfused: frozenset[int] = frozenset()
    """Positions in the plan of ops that share no kernel."""
    left: frozenset[int] = frozenset()
    """Positions of ops that are left to IREE."""

    def options(self) -> dict[str, str | list[str]]:
        """Returns the restrictions as options of our pipelines."""
        return {
            "fuse": "" if self.fuse else "false",
            "unfused": [str(op) for op in sorted(self.unfused)],
            "left": [str(op) for op in sorted(self.left)],
        }


@dataclass(frozen=True)
class Fallback:
    """The next attempt, and the note that tells the user about it."""

    restrictions: Restrictions | None
    """None if IREE compiles the whole model."""
    note: str


def planned_parts(plan: Mapping[str, Any], report: Mapping[str, Any]) -> tuple[PlannedPart, ...]:
    """Returns the fusion groups of a plan's kernels (given as JSON). The report has the ops' locations and may be empty
    ({})."""
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
    """Returns the groups that may have caused the failure: those of kernels that it names, with an op at its location.

    If the process died, `details` is its output, in which LLVM names the function that it was compiling.
    """
    running = re.findall(r"^\d+\.\s+Running pass .*", error.details, re.MULTILINE)
    words = set(re.findall(r"[\w$]+", "\n".join([error.message, *running])))
    named = tuple(part for part in parts if part.kernel in words)
    near = tuple(part for part in named or parts if error.location and error.location in part.locations)
    return near or named


def next_attempt(
    error: PassError, parts: Sequence[PlannedPart], restrictions: Restrictions, *, failures: int
) -> Fallback:
    """Returns what to try after the last of `failures` failures, which happened under `restrictions`."""
    why = f"because a pass of ours failed on {{}} ({_cause(error)})"
    found = suspects(error, parts) if failures <= MOST_NAMED_FAILURES else ()
    fused = frozenset[int]().union(*(part.ops for part in found if _is_fused(part, restrictions)))
    single = frozenset[int]().union(*(part.ops for part in found if not _is_fused(part, restrictions)))
    names = ", ".join(dict.fromkeys(f"kernel {part.kernel}" for part in found))
    if fused:
        # An op that was already alone may have failed because of its neighbour, so it gets another chance.
        changed = replace(restrictions, unfused=restrictions.unfused | fused)
        return Fallback(changed, f"{_ops(fused)} not fused, {why.format(names)}")
    if single:
        changed = replace(restrictions, left=restrictions.left | single)
        return Fallback(changed, f"{_ops(single)} left to IREE, {why.format(names)}")
    if restrictions.fuse:
        unknown = why.format("an unknown kernel")
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
    """Returns every name and file position in a printed MLIR location."""
    return [name + place for name, place in re.findall(r'"([^"]+)"((?::\d+)*)', location)]
