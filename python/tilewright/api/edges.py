"""The edges of a model's plan: the scope of each, the best other one, and what would make that the better one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.api.printing import print_planning
from tilewright.frontends import Model
from tilewright.records.encoding import camel_case
from tilewright.records.options import CompileOptions
from tilewright.records.targets import TargetChoice

_CLOSEST = 10
"""Lines of the summary."""
_SCOPES = ("thread", "warp", "block", "cluster", "grid", "launch")


@dataclass(frozen=True, kw_only=True)
class EdgeChoice:
    """An edge between two ops in kernels of Tilewright."""

    producer: int
    consumer: int
    from_op: str
    to_op: str
    from_location: str
    to_location: str
    scope: str
    seconds: float
    """Predicted seconds of the group that has both ops, or of the groups or kernels that have them."""
    other: str
    """The best other scope."""
    other_seconds: float | None
    """Seconds with the other scope; None if no other scope is possible."""
    why_impossible: str
    flip: str
    """What would make the other scope the better one."""

    @property
    def margin(self) -> float:
        """Time that the other scope takes longer, relative to that of the chosen one; infinity if it is impossible."""
        if self.other_seconds is None:
            return float("inf")
        return (self.other_seconds - self.seconds) / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        return {camel_case(name): value for name, value in asdict(self).items()}


def explain_choices(
    model: Model, target: TargetChoice = "cpu", options: CompileOptions | None = None
) -> tuple[EdgeChoice, ...]:
    """Plans a model by the policy of the options, and returns all edges in program order. Nothing is compiled."""
    options = options or CompileOptions()
    printed = print_planning("tile-print-edges", {"policy": options.policy}, model, target, options)
    return tuple(
        EdgeChoice(
            from_op=entry.pop("from"),
            to_op=entry.pop("to"),
            other_seconds=entry.pop("other_seconds", None),
            **entry,
        )
        for entry in printed
    )


def choices_json(edges: Sequence[EdgeChoice]) -> dict[str, Any]:
    """Returns the edges as plain data, with how many there are of each scope."""
    return {"scopes": _scopes(edges), "edges": [edge.to_json() for edge in edges]}


def choices_text(edges: Sequence[EdgeChoice], *, verbose: bool = False) -> str:
    """Returns how many edges have each scope and the closest choices, or all of them; equal choices are one entry."""
    if not edges:
        return "no edge leads from one kernel's op of Tilewright to another"
    counts = ", ".join(f"{count} at {scope}" for scope, count in _scopes(edges).items())
    lines = [f"{len(edges)} edges between ops in kernels of Tilewright: {counts}", ""]
    alike: dict[tuple[str, ...], list[EdgeChoice]] = {}
    for edge in sorted(edges, key=lambda edge: edge.margin):
        alike.setdefault((edge.scope, _other(edge), edge.flip), []).append(edge)
    entries = list(alike.values())
    shown = entries if verbose else [group for group in entries if group[0].other_seconds is not None]
    shown = shown if verbose else shown[:_CLOSEST]
    lines.append("all choices, the closest first" if verbose else "the closest choices")
    for group in shown:
        edge = group[0]
        names = f"{edge.from_location or edge.from_op} -> {edge.to_location or edge.to_op}"
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        lines.append(f"  {edge.scope}, {_time(edge.seconds)}: {names}{more}")
        lines.append(f"      {_other(edge)}; would flip: {edge.flip}")
    if hidden := len(entries) - len(shown):
        lines += ["", f"{hidden} more kinds of choices (shown by verbose)"]
    return "\n".join(lines)


def _scopes(edges: Sequence[EdgeChoice]) -> dict[str, int]:
    counts = Counter(edge.scope for edge in edges)
    return {scope: counts[scope] for scope in _SCOPES if counts[scope]}


def _other(edge: EdgeChoice) -> str:
    if edge.other_seconds is None:
        return f"no other scope: {edge.why_impossible}"
    return f"{edge.other}: {_time(edge.other_seconds)} ({edge.margin:+.1%})"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
