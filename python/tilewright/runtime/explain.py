"""Formats the report of a program as text for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tilewright.records.plan import CostTerm
from tilewright.records.report import Kernel, LaunchEdge, NumericsReport
from tilewright.runtime.session import missing_features
from tilewright.system.cores import spell_threads

if TYPE_CHECKING:
    from tilewright.runtime.metadata import Metadata
    from tilewright.system.ptxas import KernelResources


def explain_text(metadata: Metadata, cache_notes: Iterable[str] = ()) -> str:
    """Returns what was built, per kernel and per edge, and what was left to IREE and why."""
    report = metadata.report
    numerics = f", {report.numerics} numerics" if report.kernels else ""
    threads = f", {spell_threads(metadata.threads)}" if metadata.device == "local" else ""
    lines = [f"{metadata.entry} for target {metadata.target}{threads}{numerics}"]
    if metadata.variants:
        lines.append(_variants(metadata))
    lines += [f"state: {output} continues {input} in place" for output, input in metadata.state.items()]
    lines += [f"note: {note}" for note in (*metadata.notes, *cache_notes)]
    if metadata.seconds:
        steps = ", ".join(f"{name} {value:.2f} s" for name, value in metadata.seconds.items())
        lines.append(f"compiled in {sum(metadata.seconds.values()):.2f} s ({steps})")
    if report.coverage:
        lines.append(_coverage(report.coverage))
    lines += ["", f"{len(report.kernels)} fused kernels"]
    for kernel in report.kernels:
        lines += _kernel(kernel, metadata.resources.get(kernel.name))
    if report.edges_at_launch:
        lines += ["", "edges through memory between kernels, and why they are not inside one"]
        lines += _grouped(_edge(edge) for edge in report.edges_at_launch)
    if report.left_to_iree:
        lines += ["", "left to IREE, and why"]
        lines += _grouped((f"{op.op}: {op.reason}", op.location) for op in report.left_to_iree)
    return "\n".join(lines)


def _variants(metadata: Metadata) -> str:
    if metadata.device == "cuda":
        capabilities = [*metadata.variants.values(), metadata.capability]
        return (
            f"{len(capabilities)} variants of each fused kernel, the first that the GPU has the capability for: "
            f"{', '.join(capabilities)}; planned for {metadata.target.split(',')[0]} within the limits of all"
        )
    names = metadata.target.split(",")
    features = [*metadata.variants.values(), metadata.features]
    fitting = (name for name, needed in zip(names, features, strict=True) if not missing_features(needed))
    chosen = next(fitting, "none of them")
    return (
        f"{len(names)} variants of each fused kernel, the first that fits the processor: {', '.join(names)}; "
        f"here {chosen}; planned for {names[0]}, IREE's own kernels are for {names[-1]}"
    )


def _coverage(coverage: Mapping[str, int]) -> str:
    taken, eligible = coverage.get("bytes_taken", 0), coverage.get("bytes_eligible", 0)
    share = f"{taken / eligible:.1%}" if eligible else "none"
    ops = f"{coverage.get('ops_taken', 0)} of {coverage.get('ops_eligible', 0)} ops"
    sizes = f"{taken / 1e6:.1f} of {eligible / 1e6:.1f} MB"
    ours = "of the ops that are ours to take (nothing that IREE folds into a contraction of its own)"
    return f"{ours}, taken: {ops}, {share} ({sizes})"


def _kernel(kernel: Kernel, resources: KernelResources | None) -> list[str]:
    scopes = Counter(f"{edge.scope}{', recomputed' if edge.recompute else ''}" for edge in kernel.edges)
    handed = "; ".join(f"{count} at {scope}" for scope, count in scopes.items()) or "none"
    lines = [f"  {kernel.name}"]
    lines += [f"    {part}" for part in kernel.groups]
    lines += [f"    predicted: {'; '.join(_term(term) for term in kernel.predicted)}{_bound(kernel)}"]
    lines += [f"    moves: {'; '.join(map(str, part.movement))}" for part in kernel.groups if part.movement]
    if resources is not None:
        lines += [f"    ptxas: {resources}"]
    lines += [f"    measured: {measured}" for measured in kernel.measured]
    lines += [f"    edges inside: {handed}"]
    barriers = dict.fromkeys(edge.reason for edge in kernel.edges if edge.scope == "grid")
    lines += [f"    at grid: {reason}" for reason in barriers]
    lines += [f"    numerics: {'; '.join(_numerics(kernel)) or 'every rounding and sum as in the model'}"]
    lines += [f"      {op}" for op in kernel.ops]
    return lines


def _bound(kernel: Kernel) -> str:
    if kernel.bound in ("", "arithmetic", "latency"):
        return f"; bound by {kernel.bound}" if kernel.bound else ""
    return f"; bound by the bandwidth of {kernel.bound}"


def _numerics(kernel: Kernel) -> list[str]:
    """Describes what the kernel does to the model's numerics, with one clause for each kind of change."""
    ops = [op.numerics for op in kernel.ops]
    forms = dict.fromkeys(op.form for op in ops if op.form != "as-is")
    clauses = [f"{form} instead of the model's algebra" for form in forms]
    reductions = Counter(_accumulation(op) for op in ops if op.sums)
    clauses += [f"{count} x {reduction}" for reduction, count in reductions.items()]
    if within := [op.roundings_removed for op in ops if op.roundings_removed]:
        clauses.append(f"{_roundings(sum(within))} left out inside ops, counted per element of their results")
    stored = {op.id: op.numerics.stored for op in kernel.ops}
    unrounded = {(edge.producer, stored.get(edge.producer, "")) for edge in kernel.edges if edge.unrounded}
    for kind, count in Counter(kind for _, kind in unrounded).items():
        clauses.append(f"{_roundings(count)} to {kind} left out between ops, where values stay in f32")
    if divisions := sum(op.reciprocals for op in ops):
        clauses.append(
            f"{divisions} x division, by a reciprocal where lanes share the divisor (within 1.5 ulp)"
        )
    return clauses


def _accumulation(op: NumericsReport) -> str:
    rounded = f", rounded once to {op.stored}" if op.stored != op.accumulation else ""
    reassociated = ", reassociated over lanes" if op.reassociates else ""
    fused = ", products added unrounded (FMA)" if op.fused_multiply_add else ""
    operands = f", operands rounded to {op.operands}" if op.operands else ""
    return f"accumulated in {op.accumulation}{rounded}{operands}{reassociated}{fused}"


def _roundings(count: int) -> str:
    return f"{count} rounding{'s' if count != 1 else ''}"


def _edge(edge: LaunchEdge) -> tuple[str, str]:
    # "op 7 stays with IREE: ..." names one end of the edge, which the location already says.
    return re.sub(r"^op \d+ stays", "one end stays", edge.reason), f"{edge.producer} -> {edge.consumer}"


def _grouped(entries: Iterable[tuple[str, str]]) -> list[str]:
    """Merges entries with the same reason to one line with all their locations, because models repeat layers."""
    places: dict[str, list[str]] = {}
    for reason, place in entries:
        places.setdefault(reason, []).append(place)
    lines = []
    for reason, where in places.items():
        known = [place for place in where if place]
        shown = ", ".join(known[:3]) + (f" and {len(known) - 3} more" if len(known) > 3 else "")
        lines.append(f"  {len(where)} x {reason}" + (f" ({shown})" if shown else ""))
    return lines


def _term(term: CostTerm) -> str:
    shown = {"s": f"{term.value * 1e6:.2f} us", "B": f"{term.value / 1e6:.3f} MB"}
    return f"{term.name} {shown.get(term.unit, f'{term.value:.4g}')}"
