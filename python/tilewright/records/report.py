"""The report on a program: its kernels, the edges between them, and the ops left to IREE, each with a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.records.encoding import from_json
from tilewright.records.plan import CostTerm, FormChoice


@dataclass(frozen=True)
class NumericsReport:
    """The effect of a kernel on the numbers of an op."""

    form: str = "as-is"
    """The algebra that replaces the model's own; "as-is": none."""
    stored: str = ""
    """Element types of the results."""
    sums: bool = False
    """True if the op reduces with sums or products, which round depending on accumulator and order; extrema are
    exact."""
    accumulation: str = ""
    """Types of the accumulators, one per result; "" for a result without reduction."""
    reassociates: bool = False
    """True if sums and products are reassociated over lanes."""
    fused_multiply_add: bool = False
    """True if products are added to their sum without rounding."""
    operands: str = ""
    """Type to which operands are rounded before they are multiplied; "": they are not rounded."""
    roundings_removed: int = 0
    """Roundings to bf16 or f16 that are omitted, per element of the result."""
    reciprocals: bool = False
    """True if a division by a number that many elements share may be a multiplication by its reciprocal."""


@dataclass(frozen=True)
class OpReport:
    """An op inside a kernel; `location` is its name in the model if that is known."""

    id: int
    op: str
    location: str
    bytes: int
    """Bytes that the op would move in a kernel of its own."""
    is_root: bool
    """True if the op has a loop nest of its own; other ops are computed where their results are read."""
    numerics: NumericsReport = NumericsReport()
    micro_kernel: str = ""
    """The micro kernel of a contraction: the instruction, then M and the vectors of N of its register block; on a GPU,
    the number behind "k" says how many threads or warps share K."""
    copies: str = ""
    """On a GPU: operands that are not copied in pieces of 16 bytes, and why; empty: none."""

    def __str__(self) -> str:
        location = f" ({self.location})" if self.location else ""
        return f"{self.op}#{self.id}{location}{self.choices}"

    @property
    def choices(self) -> str:
        """What the plan chose for a contraction, as text behind a name; "" for other ops."""
        micro_kernel = f", micro kernel {self.micro_kernel}" if self.micro_kernel else ""
        return micro_kernel + (f", {self.copies}" if self.copies else "")


@dataclass(frozen=True)
class EdgeReport:
    """An edge inside a kernel: the scope of the hand-over, whether the tile is stored or recomputed, and why."""

    producer: int
    consumer: int
    scope: str
    recompute: bool
    reason: str
    unrounded: bool = False
    """True if a bf16 or f16 value is handed over before its rounding."""
    place: str = ""
    """At scope grid: where the consumer finds the tensor (shared memory, L2 or memory), and why."""


@dataclass(frozen=True)
class MovementReport:
    """Bytes that contractions move between a cache and the level below, in the loop order of their code."""

    level: str
    bytes: float
    least_bytes: float
    """Fewest bytes that any loop order moves with one kernel for all of the contractions; 0: unknown."""

    def __str__(self) -> str:
        least = f" (least of any order {self.least_bytes / 1e6:.3f})" if self.least_bytes else ""
        return f"{self.bytes / 1e6:.3f} MB past {self.level}{least}"


@dataclass(frozen=True)
class GroupReport:
    """A fusion group: ops that share an iteration space, the extents of its dims, and the tile that one step
    computes."""

    ops: tuple[int, ...]
    dims: tuple[int, ...]
    tiles: tuple[int, ...]
    workgroups: int
    threads: int = 0
    """Threads of a block on a GPU."""
    group: int = 0
    """Threads that share a row; 0: neighbouring threads compute neighbouring points."""
    phase: int = 0
    """Phase of the kernel: groups of one phase run side by side, and a grid barrier precedes the next phase."""
    resident_bytes: int = 0
    """Bytes of tensors that a block accessed in an earlier phase and still has in shared memory."""
    steps: int = 0
    """Steps along K of a tile if workgroups share the steps of all tiles (stream-K); 0: one workgroup computes each
    tile."""
    order: tuple[int, ...] = ()
    """Loop order of the dims, outermost first."""
    movement: tuple[MovementReport, ...] = ()
    """Movement by cache, innermost first; empty unless the contractions form a chain."""
    row_blocks: int = 1
    """Blocks that share a row and exchange the results of its reductions at grid barriers; 1: each row is in one
    block."""

    def __str__(self) -> str:
        blocks = f" of {self.threads} threads{_scheme(self.group)}" if self.threads else ""
        behind = f", behind grid barrier {self.phase}" if self.phase else ""
        kept = (
            f", with {self.resident_bytes} bytes of resident tiles per block" if self.resident_bytes else ""
        )
        shared = f", which share the {self.steps} steps of each tile" if self.steps else ""
        rows = f", {self.row_blocks} of which share a row" if self.row_blocks > 1 else ""
        space = f"dims {_by(self.dims)}, tiles {_by(self.tiles)}"
        return f"{space}, {self.workgroups} workgroups{blocks}{rows}{shared}{behind}{kept}"


@dataclass(frozen=True)
class Measured:
    """The measurement that chose a kernel's plan, and the margin of the choice; see docs/guide/tuning.md."""

    seconds: float
    """Seconds of the subprogram: the kernel, or all kernels that it was cut into."""
    unmeasured_seconds: float
    """Seconds of the plan that is made without measurements."""
    unfused_seconds: float | None
    """Seconds of the best plan with several kernels, or of a region with a kernel for each op; None if there is
    none."""
    ratio: float
    """Time of this plan divided by that of the unmeasured plan; 1 if the unmeasured plan won."""
    ratio_low: float
    ratio_high: float
    candidates: int
    """Number of plans that were timed."""
    machine: str
    measured_at: str
    region_ops: int = 0
    """Number of ops that were measured together, if that was a region of several kernels; 0: one subprogram."""
    form: str = ""
    """The choice of a form that was measured against its opposite, such as "online softmax declined"; "": none."""

    def __str__(self) -> str:
        where = f"in a region of {self.region_ops} ops: " if self.region_ops else ""
        if self.form:
            where = f"with {self.form} for {self.region_ops} ops: "
        won = (
            f"{self.ratio:.2f} [{self.ratio_low:.2f}, {self.ratio_high:.2f}] of the unmeasured plan's "
            f"{self.unmeasured_seconds * 1e6:.1f} us"
            if self.ratio < 1
            else "the unmeasured plan won"
        )
        unfused = f", unfused {self.unfused_seconds * 1e6:.1f} us" if self.unfused_seconds is not None else ""
        tried = f"best of {self.candidates} plans at {self.measured_at}, {self.machine}"
        return f"{where}{self.seconds * 1e6:.1f} us, {won}{unfused}; {tried}"


@dataclass(frozen=True)
class Kernel:
    """One kernel of Tilewright: one fusion group, or several side by side or in phases."""

    name: str
    ops: tuple[OpReport, ...]
    edges: tuple[EdgeReport, ...]
    groups: tuple[GroupReport, ...]
    predicted: tuple[CostTerm, ...]
    """Terms of the predicted time, each with its unit."""
    bound: str = ""
    """The resource that takes the longest time: "arithmetic", "latency", or the level whose bandwidth limits the
    kernel."""
    measured: tuple[Measured, ...] = ()
    """Measurements of the subprograms whose plan was chosen by timing; empty if none was."""

    @property
    def workgroups(self) -> int:
        phases = {part.phase for part in self.groups}
        return max(sum(part.workgroups for part in self.groups if part.phase == phase) for phase in phases)

    @property
    def has_grid_barrier(self) -> bool:
        """True if workgroups wait for each other, so that all of them must be resident at once."""
        return any(part.phase or part.steps for part in self.groups)

    @property
    def predicted_bytes(self) -> float:
        return self._term("bytes")

    @property
    def predicted_seconds(self) -> float:
        return self._term("seconds")

    @property
    def l2_traffic_bytes(self) -> float:
        """L2 traffic of all blocks on a GPU, in bytes of whole sectors; 0 if it is not known."""
        return self._term("requested of L2")

    def _term(self, name: str) -> float:
        return next((term.value for term in self.predicted if term.name == name), 0.0)

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(str(part) for part in self.groups)}"

    def __repr__(self) -> str:
        return f"<Kernel {self.name}: {len(self.ops)} ops, {self.predicted_seconds * 1e6:.1f} us predicted>"


@dataclass(frozen=True)
class LaunchEdge:
    """An edge through global memory from one kernel to the next, and why it is one."""

    producer: str
    """Op, id and name in the model, such as "linalg.generic#7 (softmax_3)"."""
    consumer: str
    bytes: int
    reason: str
    would_change: str
    producer_id: int = -1
    consumer_id: int = -1
    producer_location: str = ""
    """Name of the producer in the model, if that is known."""
    consumer_location: str = ""


@dataclass(frozen=True)
class LeftOp:
    """An op that IREE compiles, and why."""

    op: str
    location: str
    reason: str
    bytes: int = 0
    """Bytes that the op moves, counting each input and result once."""
    operations: float = 0
    is_dispatch: bool = True
    """True if IREE launches a kernel for the op; other ops become views or parts of a kernel."""
    id: int | None = None
    """Position among the tensor expressions of the function; None for an op that is no tensor expression."""


@dataclass(frozen=True)
class FormReport:
    """A form that was offered for ops, such as a reduction in two phases, with the choice that the plan has for it."""

    choice: FormChoice
    locations: tuple[str, ...]
    """Names of the ops in the model, where they are known."""


@dataclass(frozen=True)
class LoopReport:
    """A loop whose body has kernels of its own, which are launched in every step."""

    op: str
    location: str
    """Name in the model, or "" if it is not known."""
    steps: int
    """How often the body runs in a call; -1 if that is not known before the program runs."""
    kernels: tuple[str, ...]
    kernel: str = ""
    """Name of the kernel that runs all steps; "" if every step launches its kernels."""
    reason: str = ""
    """Why every step launches its kernels."""

    def __str__(self) -> str:
        name = f"{self.op} ({self.location})" if self.location else self.op
        steps = f"{self.steps} steps" if self.steps >= 0 else "steps that are counted when the program runs"
        if self.kernel:
            return f"loop {name}, {steps}: all in kernel {self.kernel}"
        kernels = f"{', '.join(self.kernels)} in each" if self.kernels else "no kernel of ours"
        return f"loop {name}, {steps}: {kernels}, because {self.reason}"


@dataclass(frozen=True)
class Report:
    """The compiler's report on a program; `raw` is the complete JSON."""

    kernels: tuple[Kernel, ...] = ()
    edges_at_launch: tuple[LaunchEdge, ...] = ()
    left_to_iree: tuple[LeftOp, ...] = ()
    forms: tuple[FormReport, ...] = ()
    loops: tuple[LoopReport, ...] = ()
    coverage: Mapping[str, int] = field(default_factory=dict)
    numerics: str = "default"
    """The numerics mode of the kernels."""
    fallbacks: tuple[str, ...] = ()
    """Ops that were left unfused, or to IREE, because one of our passes failed on them, and how it failed."""
    raw: Mapping[str, Any] = field(default_factory=dict)

    def launches_of(self, kernel: Kernel) -> int:
        """Returns how often a call launches a kernel, with 1 where that is not known before the program runs."""
        return next((max(loop.steps, 1) for loop in self.loops if kernel.name in loop.kernels), 1)

    def __repr__(self) -> str:
        return (
            f"<Report: {len(self.kernels)} kernels, {len(self.edges_at_launch)} edges through memory, "
            f"{len(self.left_to_iree)} ops left to IREE>"
        )

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> Report:
        """Builds a report from the compiler's JSON; {} gives an empty report."""
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
                    id=op.get("id"),
                )
                for op in raw.get("left_to_iree", ())
            ),
            forms=tuple(
                FormReport(from_json(FormChoice, form["choice"]), tuple(form["locations"]))
                for form in raw.get("forms", ())
            ),
            loops=tuple(
                LoopReport(
                    loop["op"],
                    first_name(loop["loc"]),
                    loop["steps"],
                    tuple(loop["kernels"]),
                    loop["kernel"],
                    loop["reason"],
                )
                for loop in raw.get("loops", ())
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
            EdgeReport(
                e["from"],
                e["to"],
                e["scope"],
                e["recompute"],
                e["reason"],
                e.get("unrounded", False),
                e.get("place", ""),
            )
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
                p.get("row_blocks", 1),
            )
            for p in raw["groups"]
        ),
        predicted=tuple(CostTerm(t["name"], t["unit"], t["value"]) for t in raw["predicted"]),
        bound=raw.get("bound", ""),
        measured=tuple(Measured(**measured) for measured in raw.get("measured", ())),
    )


def _launch_edge(raw: Mapping[str, Any]) -> LaunchEdge:
    ends, locations = [], []
    for end in ("from", "to"):
        location = first_name(raw[f"{end}_loc"])
        locations.append(location)
        ends.append(f"{raw[f'{end}_op']}#{raw[end]}" + (f" ({location})" if location else ""))
    return LaunchEdge(
        ends[0], ends[1], raw["bytes"], raw["reason"], raw["would_change"], raw["from"], raw["to"], *locations
    )


def first_name(location: str) -> str:
    """Returns the first name or file position in a printed MLIR location, or "" if there is none."""
    match = re.search(r'"([^"]+)"((?::\d+)*)', location)
    return match[1] + match[2] if match else ""


def _scheme(group: int) -> str:
    """Returns FusionStitching's name for the way in which `group` threads share a row."""
    if group == 0:
        return ""
    scheme = "thread" if group == 1 else "warp" if group <= 32 else "block"
    return f", {group} a row ({scheme} composition)"


def _by(sizes: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in sizes) or "-"
