"""The plan: which ops share a kernel, the scope at which each tensor is handed over, and the tiles.

`tilewright.compile` makes one (`program.plan`); change it, and compile with it:

    program = tilewright.compile("model.onnx")
    plan = program.plan
    plan.kernels[0].groups[0].tiles[0] = 8
    plan.kernels[0].groups[0].ops[0].blocking = None  # of a contraction: it follows from the tile
    program = tilewright.compile("model.onnx", plan=plan)

The compiler refuses a plan that breaks a rule (a cycle between kernels, a tile that does not fit) and says why.
"""

from __future__ import annotations

import copy
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.errors import OutputError, PlanError
from tilewright.records.encoding import RecordError, from_json, parse_json, to_json

if TYPE_CHECKING:
    from tilewright.ir.module import Module


@dataclass
class CostTerm:
    """A named term of a prediction; `unit` is "s", "B" or "1"."""

    name: str
    unit: str
    value: float


@dataclass
class LevelTiling:
    """Tile sizes and loop order of an op at one memory level, over the dims of the op's domain."""

    level: str
    sizes: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)


@dataclass
class LayoutStep:
    """One step of a layout recipe: pad, split, permute or swizzle."""

    kind: str
    arguments: list[int] = field(default_factory=list)


@dataclass
class TensorPlan:
    """The level at which a kernel keeps a tensor ("op3.0": result 0 of op 3, "in2": kernel input 2), and its
    lifetime."""

    tensor: str
    space: str
    lifetime: str
    layout: list[LayoutStep] = field(default_factory=list)
    access: str = "derived"
    """On a GPU, how a block accesses its tile of an input or a result: "whole" (copied as a whole), "direct" (thread by
    thread), or "derived": the one of both that touches fewer sectors of memory."""


@dataclass
class Numerics:
    """The effect of fusion and forms on the numbers of an op; see docs/guide/numerics.md."""

    accumulation: str = ""
    """Type of the accumulator, one per result ("f32, i64"); "" for a result without reduction."""
    reassociates: bool = False
    """True if sums and products are reassociated over lanes."""
    roundings_removed: int = 0
    """Roundings to bf16 or f16 that the model has and the op omits, per element of its result."""


@dataclass
class Gemm:
    """How the threads of a block on a GPU compute a contraction. Numbers are powers of two, except for `stages`."""

    m: int
    n: int
    """`m` by `n` units (threads, warps or warpgroups, as the micro kernel says) have a part of the tile each."""
    k_slices: int
    """Grids of units that take a part of each step along K."""
    step: int
    """Elements of K per step."""
    stages: int
    """Steps that shared memory holds at once."""
    lhs: str = "step"
    """How long a copy of lhs stays in shared memory: for one "step", or while a tile is walked in blocks ("walk")."""
    prefetch: str = "none"
    """Operands whose first steps are copied before the contraction begins: "none", "lhs", "rhs" or "both"."""
    lhs_copy: int = 16
    rhs_copy: int = 16
    """Bytes that a thread copies at once from global memory: an element, or 4, 8 or 16; 0: threads copy none."""


@dataclass
class Blocking:
    """How a core of a processor computes a contraction with register blocks."""

    vectors: int
    """Vectors along N of a register block."""
    unroll: int
    """Steps along K of one iteration of the innermost loop."""
    panel_k: int
    """Elements of K of a panel of rhs that is copied before all rows use it; 0: rhs is read where it lies."""
    prefetch: int
    """Bytes of the smallest panel whose row blocks fetch the next one into the L2; 0: none do."""
    k_outermost: bool
    """True if the loop over blocks of K is outside of the loop along N, so that rhs is read row by row."""
    even_rows: int
    """Accumulators (vectors) below which a last block of rows shares the rows of the one before evenly; 0: never."""
    wider_last: bool
    """True if the last block along N also takes the columns that are left, if one more vector holds them."""


@dataclass
class OpPlan:
    """One op of a kernel."""

    id: int
    op: str
    form: str
    numerics: Numerics
    root: bool
    dims: list[int] = field(default_factory=list)
    tilings: list[LevelTiling] = field(default_factory=list)
    micro_kernel: str = ""
    gemm: Gemm | None = None
    """On a GPU: how a block computes a contraction that has a micro kernel; None: the compiler chooses."""
    blocking: Blocking | None = None
    """On a processor: how a core computes a contraction that has a micro kernel; None: the compiler chooses."""
    copies: str = ""
    """On a GPU: operands that are not copied in pieces of 16 bytes, and why; empty: none."""


@dataclass
class LevelMovement:
    """Bytes that contractions move between a cache and the level below, in the loop order of their code."""

    level: str
    bytes: float
    least_bytes: float = 0.0
    """Fewest bytes that any loop order moves with one kernel for all of the contractions; 0: unknown."""
    seconds: float = 0.0


@dataclass
class GroupPlan:
    """A fusion group: ops that share an iteration space. A kernel holds one group, or several packed side by side."""

    ops: list[OpPlan]
    extents: list[int]
    tiles: list[int]
    grid: list[int]
    vector: int = -1
    workgroups: int = 1
    threads: int = 0
    """Threads of a block on a GPU."""
    group: int = 0
    """Threads that share a row; 0: neighbouring threads compute neighbouring points."""
    steps: int = 0
    """Steps along K of a tile if workgroups share the steps of all tiles (stream-K); 0: one workgroup computes each
    tile."""
    cluster: int = 1
    """Neighbouring blocks on a GPU that form a cluster, which copies inputs that all blocks read once."""
    tensors: list[TensorPlan] = field(default_factory=list)
    movement: list[LevelMovement] = field(default_factory=list)
    """Movement by cache, innermost first; empty unless the contractions form a chain."""

    def __repr__(self) -> str:
        return f"<GroupPlan: {len(self.ops)} ops, extents {self.extents}, tiles {self.tiles}>"


@dataclass
class ResidentTile:
    """A resident tile: two phases of a kernel access the tensor by the same tiles, and blocks keep theirs in shared
    memory between them. Entries with the same tensor of the same writer are one tile."""

    writer: int
    writer_input: int
    reader: int
    reader_input: int
    bytes: int = 0
    """Bytes of one block."""
    writer_result: int = -1
    """Number of the writer's result that is kept; -1: it is the input `writer_input`."""


@dataclass
class KernelPlan:
    """One kernel."""

    name: str
    groups: list[GroupPlan]
    resident_tiles: list[ResidentTile] = field(default_factory=list)
    resident_blocks: int | None = None
    """On a GPU, the blocks that shall be resident on an SM at once, for which the registers of threads are bounded;
    None: the compiler chooses."""
    predicted: list[CostTerm] = field(default_factory=list)
    bound: str = ""
    """The resource that takes the longest time: "arithmetic", "latency", or the level whose bandwidth limits the
    kernel."""

    def __repr__(self) -> str:
        return f"<KernelPlan {self.name}: {sum(len(group.ops) for group in self.groups)} ops>"


@dataclass
class EdgePlan:
    """An edge between producer and consumer: the scope at which the tile is handed over, and why."""

    producer: int
    result: int
    consumer: int
    input: int
    scope: str
    recompute: bool = False
    unrounded: bool = False
    """True if a bf16 or f16 value is handed over before its rounding."""
    reason: str = ""
    place: str = ""
    """At scope grid: where the consumer finds the tensor (shared memory, L2 or memory), and why."""
    bytes: int = 0
    seconds: float = 0.0
    would_change: str = ""


@dataclass
class LeftOp:
    """An op that IREE compiles."""

    id: int
    op: str
    reason: str


@dataclass
class FormChoice:
    """A form that was offered for ops of the graph, such as a reduction in two phases, and whether it is taken."""

    form: str
    number: int
    """Position among the offers of this form."""
    ops: list[str] = field(default_factory=list)
    """Names of the ops that the form would replace."""
    taken: bool = False
    parameters: dict[str, list[int]] = field(default_factory=dict)
    """Integers by name, such as the `parts` of a split. Without any, a form that is taken has those of its rule."""
    numerics: Numerics = field(default_factory=Numerics)
    """What taking the form does to numbers."""
    seconds: float = 0.0
    """Predicted seconds of the ops with the form; of the whole plan if a search chose it. 0: nothing is predicted."""
    otherwise_seconds: float = 0.0
    reason: str = ""
    would_change: str = ""

    def __str__(self) -> str:
        values = [f"{name} {'x'.join(map(str, values))}" for name, values in self.parameters.items()]
        choice = ", ".join([f"{self.form} taken", *values]) if self.taken else f"{self.form} declined"
        predicted = (
            f" ({self.seconds * 1e6:.1f} us predicted, otherwise {self.otherwise_seconds * 1e6:.1f} us)"
            if self.otherwise_seconds
            else ""
        )
        change = f"; would change: {self.would_change}" if self.would_change else ""
        return f"{choice}: {self.reason}{predicted}{change}"


@dataclass
class LoopPlan:
    """A loop whose block has kernels of its own."""

    op: str
    first_op: int
    """Number of the first op of the block; the others follow."""
    ops: int
    """How many tensor expressions the block has."""
    steps: int = -1
    """How often the block runs in a call; -1 if that is not known before the program runs."""
    one_kernel: bool | None = None
    """True if the kernel of the block runs all steps, False if every step launches the kernels of the block. With None,
    the compiler decides."""
    reason: str = ""
    """Why every step launches kernels."""


@dataclass
class Plan:
    """A plan for a whole program. It is plain data that can be changed freely; the compiler checks it."""

    target: str
    policy: str
    numerics: str = "default"
    kernels: list[KernelPlan] = field(default_factory=list)
    streams: list[list[int]] = field(default_factory=list)
    edges: list[EdgePlan] = field(default_factory=list)
    left: list[LeftOp] = field(default_factory=list)
    forms: list[FormChoice] = field(default_factory=list)
    """Choices of forms, in the order in which they were made. Ops are numbered after the forms that are taken."""
    loops: list[LoopPlan] = field(default_factory=list)
    """Loops whose bodies have ops. Ops of the function's own block are numbered first."""

    def forms_only(self) -> Plan:
        """Returns a plan that states the forms and leaves kernels to the policy, because they depend on the forms."""
        return Plan(self.target, self.policy, self.numerics, forms=copy.deepcopy(self.forms))

    @staticmethod
    def from_json(data: dict[str, Any]) -> Plan:
        """Reads the JSON form with the compiler's own reader. Raises `PlanError` that names the wrong member."""
        from tilewright.ir.native import native  # programs load and run without the compiler

        text, problem = native.normalize_plan(json.dumps(data))
        if problem:
            raise PlanError(problem)
        return plan_of_compiler(json.loads(text))

    def to_json(self) -> dict[str, Any]:
        return to_json(self)  # type: ignore[no-any-return]

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Plan:
        """Reads a file written by `save`, `--plan-out` or `tilewright-opt`. Raises `PlanError`."""
        try:
            data = parse_json(Path(path).read_text())
        except OSError as error:
            raise PlanError(f"cannot be read ({error.strerror})", where=os.fspath(path)) from None
        except ValueError as error:
            raise PlanError(f"not JSON: {error}", where=os.fspath(path)) from None
        return Plan.from_json(data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON form. Raises `OutputError`."""
        try:
            Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")
        except OSError as error:
            raise OutputError(f"cannot be written ({error.strerror})", where=os.fspath(path)) from None

    def verify(self, module: Module) -> None:
        """Raises `PlanError` unless the plan is legal for the only function of a module."""
        problem = module.check_plan(json.dumps(self.to_json()))
        if problem:
            raise PlanError(problem)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return (
            f"<Plan for {self.target} by {self.policy}, {self.numerics} numerics: {len(self.kernels)} kernels, "
            f"{len(self.edges)} edges, {len(self.left)} ops left to IREE>"
        )


def _lines(plan: Plan) -> list[str]:
    lines = [
        f"plan for {plan.target} by {plan.policy}, {plan.numerics} numerics: {len(plan.kernels)} kernels"
    ]
    for kernel in plan.kernels:
        terms = ", ".join(f"{t.name} {t.value:.4g} {t.unit}" for t in kernel.predicted)
        lines.append(f"  {kernel.name} ({terms})")
        for part in kernel.groups:
            ops = ", ".join(f"{op.op}#{op.id}" for op in part.ops)
            lines.append(
                f"    extents {part.extents}, tiles {part.tiles}, {part.workgroups} workgroups: {ops}"
            )
    return lines


def plan_of_compiler(data: dict[str, Any]) -> Plan:
    """Reads the JSON form as the compiler writes it, with every member. Raises `PlanError`."""
    try:
        return from_json(Plan, data)
    except RecordError as error:
        raise PlanError(str(error)) from None
