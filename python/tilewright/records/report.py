"""What was built: kernels, the edges between them, and what was left to IREE, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.records.plan import CostTerm


@dataclass(frozen=True)
class NumericsReport:
    """What a kernel does to an op's numbers."""

    form: str = "as-is"
    """Which algebra stands for the model's own; "as-is": none."""
    stored: str = ""
    """Element types of the results."""
    sums: bool = False
    """Reduces with sums or products, whose rounding depends on the accumulator and the order; extrema are exact."""
    accumulation: str = ""
    """Types of the accumulators, one per result; "" where nothing is reduced."""
    reassociates: bool = False
    """Sums and products are regrouped over lanes."""
    fused_multiply_add: bool = False
    """Products are added to their sum unrounded."""
    factors: str = ""
    """The type that factors are rounded to before they are multiplied; "": they are not."""
    roundings_removed: int = 0
    """Roundings to bf16 or f16 left out, per element of the result."""
    reciprocals: bool = False
    """Dividing by a number that many elements share may be multiplying by its reciprocal."""


@dataclass(frozen=True)
class OpReport:
    """An op inside a kernel; `location` is its name in the model where that is known."""

    id: int
    op: str
    location: str
    bytes: int
    """What it would move in a kernel of its own."""
    is_root: bool
    """Has a loop nest of its own; other ops are computed where they are read."""
    numerics: NumericsReport = NumericsReport()
    micro_kernel: str = ""
    """What computes a contraction: the instruction, rows and vectors of its register block; on a GPU after a "k" how
    many threads or warps share the terms of a sum."""
    copies: str = ""
    """On a GPU, which operands come by more or less than 16 bytes at a time, and why; empty: none."""

    def __str__(self) -> str:
        place = f" ({self.location})" if self.location else ""
        return (
            f"{self.op}#{self.id}{place}"
            + (f", micro kernel {self.micro_kernel}" if self.micro_kernel else "")
            + (f", {self.copies}" if self.copies else "")
        )


@dataclass(frozen=True)
class EdgeReport:
    """A hand-over inside a kernel: at which scope, whether the tile is kept or computed again, and why."""

    producer: int
    consumer: int
    scope: str
    recompute: bool
    reason: str
    unrounded: bool = False
    """A bf16 or f16 value is handed over as it is before its rounding."""


@dataclass(frozen=True)
class MovementReport:
    """What contractions move between a cache and the level below, in the order of their code."""

    level: str
    bytes: float
    least_bytes: float
    """Of any order of one kernel for all of them; 0: unknown."""

    def __str__(self) -> str:
        least = f" (least of any order {self.least_bytes / 1e6:.3f})" if self.least_bytes else ""
        return f"{self.bytes / 1e6:.3f} MB past {self.level}{least}"


@dataclass(frozen=True)
class GroupReport:
    """Ops that share an index space: its sizes, and the tile of it that a step computes."""

    ops: tuple[int, ...]
    dims: tuple[int, ...]
    tiles: tuple[int, ...]
    workgroups: int
    threads: int = 0
    """On a GPU: of a block."""
    group: int = 0
    """How many of them share a row; 0: neighbouring threads take neighbouring points."""
    phase: int = 0
    """Of the kernel: parts of one phase run side by side, with a barrier of the grid before the next."""
    resident_bytes: int = 0
    """Of inputs, which a block read in an earlier phase and finds in its shared memory."""
    steps: int = 0
    """Of a tile, where workgroups share the steps of all tiles (stream-K); 0: each tile is of one workgroup."""
    order: tuple[int, ...] = ()
    """Of the dims, outermost loop first."""
    movement: tuple[MovementReport, ...] = ()
    """By cache, innermost first; empty where contractions form no chain."""

    def __str__(self) -> str:
        blocks = f" of {self.threads} threads{_scheme(self.group)}" if self.threads else ""
        behind = f", behind barrier {self.phase} of the grid" if self.phase else ""
        kept = f", finds {self.resident_bytes} bytes a block kept" if self.resident_bytes else ""
        shared = f", which share the {self.steps} steps of each tile" if self.steps else ""
        space = f"dims {_by(self.dims)}, tiles {_by(self.tiles)}"
        return f"{space}, {self.workgroups} workgroups{blocks}{shared}{behind}{kept}"


@dataclass(frozen=True)
class Measured:
    """How a kernel's plan came to be measured, and by how much it won; see docs/tuning.md."""

    seconds: float
    """Of the subprogram: the kernel, or all kernels that it was cut into."""
    unmeasured_seconds: float
    """Of the plan that is made without measuring."""
    unfused_seconds: float | None
    """Of the best plan with several kernels; None where there is none."""
    ratio: float
    """Of its time over that of the unmeasured plan; 1 where that won."""
    ratio_low: float
    ratio_high: float
    candidates: int
    """Plans that were timed."""
    machine: str
    measured_at: str

    def __str__(self) -> str:
        won = (
            f"{self.ratio:.2f} [{self.ratio_low:.2f}, {self.ratio_high:.2f}] of the unmeasured plan's "
            f"{self.unmeasured_seconds * 1e6:.1f} us"
            if self.ratio < 1
            else "the unmeasured plan won"
        )
        unfused = f", unfused {self.unfused_seconds * 1e6:.1f} us" if self.unfused_seconds is not None else ""
        tried = f"best of {self.candidates} plans at {self.measured_at}, {self.machine}"
        return f"{self.seconds * 1e6:.1f} us, {won}{unfused}; {tried}"


@dataclass(frozen=True)
class Kernel:
    """One kernel of ours: one part, or several, side by side or in phases."""

    name: str
    ops: tuple[OpReport, ...]
    edges: tuple[EdgeReport, ...]
    groups: tuple[GroupReport, ...]
    predicted: tuple[CostTerm, ...]
    """Every term of the prediction, each with its unit."""
    bound: str = ""
    """What of it takes longest: "arithmetic", "latency", or a level whose bandwidth it is."""
    measured: tuple[Measured, ...] = ()
    """For parts whose plan was chosen by the clock; empty where none was."""

    @property
    def workgroups(self) -> int:
        phases = {part.phase for part in self.groups}
        return max(sum(part.workgroups for part in self.groups if part.phase == phase) for phase in phases)

    @property
    def meets(self) -> bool:
        """Whether its workgroups wait for each other, so that all must be resident at once."""
        return any(part.phase or part.steps for part in self.groups)

    @property
    def predicted_bytes(self) -> float:
        return self._term("bytes")

    @property
    def predicted_seconds(self) -> float:
        return self._term("seconds")

    @property
    def l2_traffic_bytes(self) -> float:
        """On a GPU, what all blocks ask of the L2, in whole sectors; 0 where that is not known."""
        return self._term("requested of L2")

    def _term(self, name: str) -> float:
        return next((term.value for term in self.predicted if term.name == name), 0.0)

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(str(part) for part in self.groups)}"


@dataclass(frozen=True)
class LaunchEdge:
    """An edge that goes through global memory from one kernel to the next, and why."""

    producer: str
    consumer: str
    bytes: int
    reason: str
    would_change: str


@dataclass(frozen=True)
class LeftOp:
    """An op that IREE compiles, and why."""

    op: str
    location: str
    reason: str
    bytes: int = 0
    """What it moves: each input and result once."""
    operations: float = 0
    is_dispatch: bool = True
    """IREE launches a kernel for it; the others become views or parts of one."""


@dataclass(frozen=True)
class Report:
    """Everything that the compiler has to say about a program; `raw` is its JSON, complete."""

    kernels: tuple[Kernel, ...] = ()
    edges_at_launch: tuple[LaunchEdge, ...] = ()
    left_to_iree: tuple[LeftOp, ...] = ()
    coverage: Mapping[str, int] = field(default_factory=dict)
    numerics: str = "default"
    """What kernels were allowed to do to numbers."""
    fallbacks: tuple[str, ...] = ()
    """What was left unfused, or to IREE, because a pass of ours failed on it, and how the pass failed."""
    raw: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> Report:
        """Reads what the compiler wrote; {} is a report on nothing."""
        return Report(
            kernels=tuple(_kernel(kernel) for kernel in raw.get("kernels", ())),
            edges_at_launch=tuple(_launch_edge(edge) for edge in raw.get("edges_at_launch", ())),
            left_to_iree=tuple(
                LeftOp(
                    op["op"],
                    first_name(op["loc"]),
                    op["reason"],
                    bytes=op["bytes"],
                    operations=op["operations"],
                    is_dispatch=op["dispatch"],
                )
                for op in raw.get("left_to_iree", ())
            ),
            coverage=raw.get("coverage", {}),
            numerics=raw.get("numerics", "default"),
            fallbacks=tuple(raw.get("fallbacks", ())),
            raw=raw,
        )


def _kernel(raw: Mapping[str, Any]) -> Kernel:
    return Kernel(
        name=raw["name"],
        ops=tuple(
            OpReport(
                o["id"],
                o["op"],
                first_name(o["loc"]),
                o["bytes"],
                o["root"],
                NumericsReport(**o.get("numerics", {})),
                o.get("micro_kernel", ""),
                o.get("copies", ""),
            )
            for o in raw["ops"]
        ),
        edges=tuple(
            EdgeReport(e["from"], e["to"], e["scope"], e["recompute"], e["reason"], e.get("unrounded", False))
            for e in raw["edges"]
        ),
        groups=tuple(
            GroupReport(
                tuple(p["ops"]),
                tuple(p["dims"]),
                tuple(p["tiles"]),
                p["workgroups"],
                p.get("threads", 0),
                p.get("group", 0),
                p.get("phase", 0),
                p.get("resident_bytes", 0),
                p.get("steps", 0),
                tuple(p.get("order", ())),
                tuple(MovementReport(**level) for level in p.get("movement", ())),
            )
            for p in raw["groups"]
        ),
        predicted=tuple(CostTerm(t["name"], t["unit"], t["value"]) for t in raw["predicted"]),
        bound=raw.get("bound", ""),
        measured=tuple(Measured(**measured) for measured in raw.get("measured", ())),
    )


def _launch_edge(raw: Mapping[str, Any]) -> LaunchEdge:
    ends = []
    for end in ("from", "to"):
        place = first_name(raw[f"{end}_loc"])
        ends.append(f"{raw[f'{end}_op']}#{raw[end]}" + (f" ({place})" if place else ""))
    return LaunchEdge(ends[0], ends[1], raw["bytes"], raw["reason"], raw["would_change"])


def first_name(location: str) -> str:
    """The first name or file position in a printed MLIR location; "" if there is none."""
    match = re.search(r'"([^"]+)"((?::\d+)*)', location)
    return match[1] + match[2] if match else ""


def _scheme(group: int) -> str:
    """FusionStitching's name for how threads share a row."""
    if group == 0:
        return ""
    scheme = "thread" if group == 1 else "warp" if group <= 32 else "block"
    return f", {group} a row ({scheme} composition)"


def _by(sizes: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in sizes) or "-"
