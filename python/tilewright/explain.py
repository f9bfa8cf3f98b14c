"""The report of a program as text for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tilewright.report import Kernel, Report

if TYPE_CHECKING:
    from tilewright.program import Metadata


def explain_text(metadata: Metadata) -> str:
    """What was built, per kernel and per edge, and what was left to IREE and why."""
    report = metadata.report
    lines = [f"{metadata.entry} for target {metadata.target}, {metadata.threads} threads"]
    lines += [f"note: {note}" for note in metadata.notes]
    if metadata.seconds:
        steps = ", ".join(f"{name} {value:.2f} s" for name, value in metadata.seconds.items())
        lines.append(f"compiled in {sum(metadata.seconds.values()):.2f} s ({steps})")
    lines += _coverage(report)
    lines += ["", f"{len(report.kernels)} fused kernels"]
    for kernel in report.kernels:
        lines += _kernel(kernel)
    if report.edges_at_launch:
        lines += ["", "edges between kernels, and why they are not inside one"]
        lines += [f"  {e.producer} -> {e.consumer}: {e.reason}" for e in report.edges_at_launch]
    if report.left_to_iree:
        lines += ["", "left to IREE, and why"]
        lines += _left(report)
    return "\n".join(lines)


def _coverage(report: Report) -> list[str]:
    lines = []
    for name, value in report.coverage.items():
        shown = f"{value:.1%}" if isinstance(value, float) and 0 <= value <= 1 else str(value)
        lines.append(f"coverage, {name.replace('_', ' ')}: {shown}")
    return lines


def _kernel(kernel: Kernel) -> list[str]:
    predicted = "; ".join(f"{name} {_quantity(name, value)}" for name, value in kernel.predicted.items())
    scopes = Counter(edge.scope for edge in kernel.edges)
    handed = ", ".join(f"{count} at {scope}" for scope, count in scopes.items()) or "none"
    sizes = f"dims {_by(kernel.dims)}, tiles {_by(kernel.tiles)}, {kernel.workgroups} workgroups"
    lines = [
        f"  {kernel.name}: {sizes}",
        f"    predicted: {predicted or 'nothing'}",
        f"    edges inside: {handed}",
    ]
    for op in kernel.ops:
        where = f" ({op.location})" if op.location else ""
        lines.append(f"      {op.op}#{op.id}{where}")
    return lines


def _left(report: Report) -> list[str]:
    """Grouped, because a model repeats itself: one line for each op and reason, with the places."""
    places: dict[tuple[str, str], list[str]] = {}
    for op in report.left_to_iree:
        places.setdefault((op.op, op.reason), []).append(op.location)
    lines = []
    for (name, reason), where in places.items():
        known = [place for place in where if place]
        shown = ", ".join(known[:3]) + (f" and {len(known) - 3} more" if len(known) > 3 else "")
        lines.append(f"  {len(where)} x {name}: {reason}" + (f" ({shown})" if shown else ""))
    return lines


def _quantity(name: str, value: float) -> str:
    if name == "seconds" or name.endswith("_seconds"):
        return f"{value * 1e6:.1f} us"
    if name == "bytes" or name.endswith("_bytes"):
        return f"{value / 1e6:.3f} MB"
    return f"{value:.4g}"


def _by(sizes: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in sizes) or "-"
