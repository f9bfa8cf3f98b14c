"""The plan: which ops share a kernel, where every tensor is handed over, and with which tiles.

`tilewright.compile` makes one (`program.plan`); change it, and compile with it:

    program = tilewright.compile("model.onnx")
    plan = program.plan
    plan.kernels[0].groups[0].tiles[0] = 8
    program = tilewright.compile("model.onnx", plan=plan)

A plan that breaks a rule (a cycle between kernels, a tile that does not fit) is refused with the reason.
"""

from __future__ import annotations

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
    """Tile sizes and loop order of an op at one memory level, over the op's domain."""

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
    """Where a kernel keeps a tensor ("op3.0": result 0 of op 3, "in2": kernel input 2), and for how long."""

    tensor: str
    space: str
    lifetime: str
    layout: list[LayoutStep] = field(default_factory=list)


@dataclass
class Numerics:
    """What fusing and forming an op does to its numbers; see docs/numerics.md."""

    accumulation: str = ""
    """Type of the accumulator, one per result ("f32, i64"); "" where nothing is reduced."""
    reassociates: bool = False
    """Sums and products are regrouped over lanes."""
    roundings_removed: int = 0
    """Roundings to bf16 or f16 that the model has and the op has not, per element of its result."""


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
    copies: str = ""
    """On a GPU, which operands come by more or less than 16 bytes, and why; empty: none."""


@dataclass
class LevelMovement:
    """What contractions move between a cache and the level below, in the order of their code."""

    level: str
    bytes: float
    least_bytes: float = 0.0
    """Of any order of one kernel for all of them; 0: unknown."""
    seconds: float = 0.0


@dataclass
class GroupPlan:
    """Ops that share an index space; a kernel has one part, or several packed side by side."""

    ops: list[OpPlan]
    extents: list[int]
    tiles: list[int]
    grid: list[int]
    vector: int = -1
    workgroups: int = 1
    threads: int = 0
    """On a GPU: of a block."""
    group: int = 0
    """How many of them share a row; 0: neighbouring threads take neighbouring points."""
    steps: int = 0
    """Of a tile, where workgroups share the steps of all tiles (stream-K); 0: each tile is of one workgroup."""
    tensors: list[TensorPlan] = field(default_factory=list)
    movement: list[LevelMovement] = field(default_factory=list)
    """By cache, innermost first; empty where contractions form no chain."""


@dataclass
class ResidentTile:
    """A tensor that two parts of a kernel read by the same tiles: blocks keep theirs in shared memory in between."""

    writer: int
    writer_input: int
    reader: int
    reader_input: int
    bytes: int = 0
    """Of a block."""


@dataclass
class KernelPlan:
    """One kernel."""

    name: str
    groups: list[GroupPlan]
    resident_tiles: list[ResidentTile] = field(default_factory=list)
    predicted: list[CostTerm] = field(default_factory=list)
    bound: str = ""
    """What of it takes longest: "arithmetic", "latency", or a level whose bandwidth it is."""


@dataclass
class EdgePlan:
    """A producer-consumer edge: the scope at which the tile is handed over, and why."""

    producer: int
    result: int
    consumer: int
    input: int
    scope: str
    recompute: bool = False
    unrounded: bool = False
    """A bf16 or f16 value is handed over as it is before its rounding."""
    reason: str = ""
    bytes: int = 0
    seconds: float = 0.0
    would_change: str = ""


@dataclass
class LeftOp:
    """An op that stays with IREE."""

    id: int
    op: str
    reason: str


@dataclass
class Plan:
    """A whole plan. Plain data: change it as you like, the compiler checks it."""

    target: str
    policy: str
    numerics: str = "default"
    kernels: list[KernelPlan] = field(default_factory=list)
    streams: list[list[int]] = field(default_factory=list)
    edges: list[EdgePlan] = field(default_factory=list)
    left: list[LeftOp] = field(default_factory=list)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Plan:
        """Reads the JSON form with the compiler's own reader, which names the member at fault."""
        from tilewright.ir.native import native  # programs load and run without the compiler

        text, problem = native.normalize_plan(json.dumps(data))
        if problem:
            raise PlanError(problem)
        try:
            return from_json(Plan, json.loads(text))
        except RecordError as error:
            raise PlanError(str(error)) from None

    def to_json(self) -> dict[str, Any]:
        return to_json(self)  # type: ignore[no-any-return]

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Plan:
        """Reads a file that `save`, `--plan-out` or `tilewright-opt` wrote."""
        try:
            data = parse_json(Path(path).read_text())
        except OSError as error:
            raise PlanError(f"cannot be read ({error.strerror})", where=os.fspath(path)) from None
        except ValueError as error:
            raise PlanError(f"not JSON: {error}", where=os.fspath(path)) from None
        return Plan.from_json(data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON form."""
        try:
            Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")
        except OSError as error:
            raise OutputError(f"cannot be written ({error.strerror})", where=os.fspath(path)) from None

    def verify(self, module: Module) -> None:
        """Raises `PlanError` unless the plan is legal for the one function of a module."""
        problem = module.check_plan(json.dumps(self.to_json()))
        if problem:
            raise PlanError(problem)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


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
