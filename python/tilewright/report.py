"""What was built: kernels, the edges between them, and what was left to IREE, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class OpReport:
    """An op inside a kernel; `location` is its name in the model where that is known."""

    id: int
    op: str
    location: str
    bytes: int


@dataclass(frozen=True)
class EdgeReport:
    """A hand-over inside a kernel: at which scope, and whether the tile is kept or computed again."""

    producer: int
    consumer: int
    scope: str
    reuse: str


@dataclass(frozen=True)
class Kernel:
    """One kernel of ours."""

    name: str
    ops: tuple[OpReport, ...]
    edges: tuple[EdgeReport, ...]
    dims: tuple[int, ...]
    tiles: tuple[int, ...]
    workgroups: int
    predicted: Mapping[str, float]
    """Every term of the prediction; "bytes" and "seconds" are always there."""

    def __str__(self) -> str:
        ops = ", ".join(o.op for o in self.ops)
        sizes = f"dims {_by(self.dims)}, tiles {_by(self.tiles)}, {self.workgroups} workgroups"
        return f"{self.name}({ops}): {sizes}"


@dataclass(frozen=True)
class LaunchEdge:
    """An edge that goes through global memory from one kernel to the next, and why."""

    producer: str
    consumer: str
    reason: str


@dataclass(frozen=True)
class LeftOp:
    """An op that IREE compiles, and why."""

    op: str
    location: str
    reason: str


@dataclass(frozen=True)
class Report:
    """Everything that the compiler has to say about a program; `raw` is its JSON, complete."""

    kernels: tuple[Kernel, ...] = ()
    edges_at_launch: tuple[LaunchEdge, ...] = ()
    left_to_iree: tuple[LeftOp, ...] = ()
    coverage: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> Report:
        """Reads what the compiler wrote. Members that it does not write are empty."""
        return Report(
            kernels=tuple(_kernel(k) for k in raw.get("kernels", ())),
            edges_at_launch=tuple(
                LaunchEdge(str(e["from"]), str(e["to"]), e.get("reason", ""))
                for e in raw.get("edges_at_launch", ())
            ),
            left_to_iree=tuple(
                LeftOp(o.get("op", "?"), o.get("loc", ""), o.get("reason", ""))
                for o in raw.get("left_to_iree", ())
            ),
            coverage=raw.get("coverage", {}),
            raw=raw,
        )


def _kernel(raw: Mapping[str, Any]) -> Kernel:
    return Kernel(
        name=raw["name"],
        ops=tuple(
            OpReport(o.get("id", -1), o.get("op", "?"), o.get("loc", ""), o.get("bytes", 0))
            for o in raw.get("ops", ())
        ),
        edges=tuple(
            EdgeReport(e["from"], e["to"], e.get("scope", "?"), e.get("reuse", ""))
            for e in raw.get("edges", ())
        ),
        dims=tuple(raw.get("dims", ())),
        tiles=tuple(raw.get("tiles", ())),
        workgroups=raw.get("workgroups", 0),
        predicted=raw.get("predicted", {}),
    )


def _by(sizes: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in sizes) or "-"
