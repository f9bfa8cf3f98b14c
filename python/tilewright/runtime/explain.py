"""Formats the report of a program: text for people, and JSON."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tilewright.iree.versions import PINNED_IREE
from tilewright.records.encoding import camel_case, to_json
from tilewright.records.plan import CostTerm
from tilewright.records.report import FormReport, Kernel, LaunchEdge, NumericsReport
from tilewright.runtime.processor import missing_features
from tilewright.runtime.summary import (
    Boundary,
    Coverage,
    KernelSummary,
    Summary,
    is_layout,
    kinds_text,
    summarize,
)
from tilewright.system.cores import spell_threads

if TYPE_CHECKING:
    from tilewright.runtime.metadata import Metadata
    from tilewright.runtime.shapes import ShapeState
    from tilewright.system.ptxas import KernelResources


_WIDTH = 110


def explain_text(
    metadata: Metadata,
    cache_notes: Iterable[str] = (),
    *,
    shapes: Iterable[ShapeState] = (),
    verbose: bool = False,
) -> str:
    """Returns a summary of what was built and why, then the details of each kernel.

    `shapes` say what became of shapes since the compilation. Ops that only say where elements lie, and what IREE does
    with them, are shown if `verbose` is set.
    """
    report = metadata.report
    summary = summarize(report, iree_seconds=metadata.iree_seconds)
    lines = [
        *_head(metadata, summary, [*map(str, shapes), *_notes(metadata, cache_notes)]),
        *_kernels(summary),
        *_boundaries(summary),
    ]
    lines += _forms(report.forms)
    lines += ["", *map(str, report.loops)] if report.loops else []
    lines += _left(metadata, summary, verbose=verbose)
    if metadata.variants:
        lines += ["", _variants(metadata)]
    if metadata.seconds:
        steps = ", ".join(
            f"{name.replace('_', ' ')} {value:.2f} s" for name, value in metadata.seconds.items()
        )
        lines += ["", f"compiled in {sum(metadata.seconds.values()):.2f} s ({steps})"]
    for number, kernel in enumerate(report.kernels, start=1):
        lines += ["", *_kernel(number, kernel, metadata.resources.get(kernel.name), verbose=verbose)]
    for shape in metadata.shapes:
        lines += ["", str(shape)]
        for number, kernel in enumerate(shape.report.kernels, start=1):
            lines += ["", *_kernel(number, kernel, metadata.resources.get(kernel.name), verbose=verbose)]
    if verbose and report.edges_at_launch:
        lines += ["", "all edges through memory, and why they are not inside a kernel"]
        lines += _grouped(_edge(edge) for edge in report.edges_at_launch)
    return "\n".join(lines)


def explain_json(
    metadata: Metadata, cache_notes: Iterable[str] = (), *, shapes: Iterable[ShapeState] = ()
) -> dict[str, Any]:
    """Returns what `explain_text` says as plain data, with members in camelCase, as in plans and targets."""
    report, signature = metadata.report, metadata.signature
    return {
        "entry": metadata.entry,
        "target": metadata.target,
        "device": metadata.device,
        "runtime": "direct" if metadata.launches is not None else "iree",
        "threads": metadata.threads,
        "numerics": report.numerics,
        "features": metadata.features,
        "capability": metadata.capability,
        "variants": dict(metadata.variants),
        "inputs": to_json(signature.inputs) if signature else None,
        "outputs": to_json(signature.outputs) if signature else None,
        "state": dict(metadata.state),
        "dims": {name: str(dim) for name, dim in metadata.dims.items()},
        "shapesAhead": [
            {"sizes": dict(shape.sizes), "kernels": to_json(shape.report.kernels)}
            for shape in metadata.shapes
        ],
        "shapes": [shape.to_json() for shape in shapes],
        "notes": list(metadata.notes),
        "cache": list(cache_notes),
        "seconds": {camel_case(name): value for name, value in metadata.seconds.items()},
        "iree": PINNED_IREE,
        "ireeFlags": list(metadata.iree_flags),
        "summary": to_json(summarize(report, iree_seconds=metadata.iree_seconds)),
        "kernels": to_json(report.kernels),
        "resources": to_json(metadata.resources),
        "edgesAtLaunch": to_json(report.edges_at_launch),
        "leftToIree": to_json(report.left_to_iree),
        "forms": to_json(report.forms),
        "loops": to_json(report.loops),
        "fallbacks": list(report.fallbacks),
        "plan": metadata.plan,
    }


def _notes(metadata: Metadata, cache_notes: Iterable[str]) -> list[str]:
    return [f"note: {note}" for note in (*metadata.notes, *cache_notes)]


def _head(metadata: Metadata, summary: Summary, notes: Iterable[str]) -> list[str]:
    numerics = f", {metadata.report.numerics} numerics" if summary.kernels else ""
    threads = f", {spell_threads(metadata.threads)}" if metadata.kind.in_process else ""
    lines = [f"{metadata.entry} for target {metadata.target}{threads}{numerics}"]
    lines.append(_runtime(metadata))
    lines += [f"state: {output} continues {input} in place" for output, input in metadata.state.items()]
    lines += [f"dim {name}: {dim}" for name, dim in metadata.dims.items()]
    lines += [*map(str, metadata.shapes), *notes]
    return lines + _coverage(summary.coverage)


def _runtime(metadata: Metadata) -> str:
    """Says what runs calls (docs/guide/calls.md)."""
    if metadata.launches is not None:
        return "calls run without IREE"
    inputs = metadata.signature.inputs if metadata.signature else ()
    if not all(isinstance(size, int) for spec in inputs for size in spec.shape):
        return "calls run in IREE's runtime, because shapes are open"
    part = "a part of the program" if metadata.report.kernels else "the program"
    return f"calls run in IREE's runtime, because IREE computes {part}"


def _coverage(coverage: Coverage) -> list[str]:
    if not coverage.ops_eligible:
        return []
    share = coverage.bytes_taken / coverage.bytes_eligible if coverage.bytes_eligible else 1.0
    text = (
        f"coverage: {coverage.ops_taken} of the {coverage.ops_eligible} ops that need a kernel are in kernels of ours, "
        f"{share:.1%} of their {_size(coverage.bytes_eligible)}"
    )
    seconds = coverage.predicted_seconds + coverage.iree_seconds
    if seconds:
        text += f" and {coverage.predicted_seconds / seconds:.0%} of the predicted {_time(seconds)}"
    return [text]


def _kernels(summary: Summary) -> list[str]:
    count = len(summary.kernels)
    lines = ["", f"{count} fused kernel{'s' if count != 1 else ''}"]
    tuned = any(kernel.measured_seconds is not None for kernel in summary.kernels)
    if count:
        lines[-1] += f": predicted{' and measured' if tuned else ''} time, ops of the model, edges by scope"
    return lines + [_kernel_line(kernel, tuned=tuned) for kernel in summary.kernels]


def _kernel_line(kernel: KernelSummary, *, tuned: bool) -> str:
    measured = _time(kernel.measured_seconds) if kernel.measured_seconds is not None else "-"
    times = f"{_time(kernel.predicted_seconds):>9}" + (f" {measured:>9}" if tuned else "")
    ops = f" ({kernel.model_ops} ops)" if kernel.model_ops > 1 else ""
    scopes = ", ".join(f"{count} at {scope}" for scope, count in kernel.scopes.items())
    kinds = kinds_text(kernel.kinds)
    described = "" if kinds == kernel.title else f": {kinds}"
    return f"{kernel.number:>4} {times}  {kernel.title}{ops}{described}{f'; {scopes}' if scopes else ''}"


def _boundaries(summary: Summary) -> list[str]:
    """Merges boundaries with the same reason, because models repeat layers."""
    if len(summary.kernels) < 2:
        return []
    if not summary.boundaries:
        return ["", "boundaries between kernels: none, because no kernel reads what another one writes"]
    alike: dict[tuple[str, str], list[Boundary]] = {}
    for boundary in summary.boundaries:
        alike.setdefault((boundary.reason, boundary.would_change), []).append(boundary)
    lines = ["", "boundaries between kernels: bytes written and read again, why, and what would change it"]
    for (reason, would_change), group in alike.items():
        pairs = [f"{boundary.producer} -> {boundary.consumer}" for boundary in group]
        writer, reader = group[0].tensors[0]
        more = sum(len(boundary.tensors) for boundary in group) - 1
        others = f" and {more} more edge{'s' if more > 1 else ''}" if more else ""
        size = _size(sum(boundary.bytes for boundary in group))
        lines.append(f"  {_few(pairs)}  {size}  {writer} -> {reader}{others}")
        lines.append(f"      {reason}; would change: {would_change}")
    return lines


def _forms(forms: Iterable[FormReport]) -> list[str]:
    """Lists the forms that ops could have, those that are taken first."""
    ordered = sorted(forms, key=lambda form: not form.choice.taken)
    if not ordered:
        return []
    places = ((str(form.choice), next(filter(None, form.locations), "")) for form in ordered)
    return ["", "forms that ops could have", *_grouped(places)]


def _left(metadata: Metadata, summary: Summary, *, verbose: bool) -> list[str]:
    """Lists what stays with IREE: ops with kernels of their own, and the rest if `verbose` is set."""
    every = metadata.report.left_to_iree
    shown = every if verbose else summary.left
    if not every:
        return []
    lines = ["", "left to IREE, and why"]
    if summary.left and metadata.iree_seconds:
        lines[-1] += f" (at least {_time(metadata.iree_seconds)})"
    lines += _grouped((f"{op.op}: {op.reason}", op.location) for op in shown)
    if hidden := len(every) - len(shown):
        lines.append(
            f"  {hidden} x views, layouts of weights and constants, which need no kernel (shown by verbose)"
        )
    return lines


def _size(count: float) -> str:
    scaled, unit = next(
        ((count / s, u) for s, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= s), (count, "B")
    )
    return f"{scaled:.3g} {unit}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _few(items: list[str]) -> str:
    return ", ".join(items[:3]) + (f" and {len(items) - 3} more" if len(items) > 3 else "")


def _variants(metadata: Metadata) -> str:
    if metadata.kind.has_capabilities:
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


def _kernel(number: int, kernel: Kernel, resources: KernelResources | None, *, verbose: bool) -> list[str]:
    scopes = Counter(f"{edge.scope}{', recomputed' if edge.recompute else ''}" for edge in kernel.edges)
    handed = "; ".join(f"{count} at {scope}" for scope, count in scopes.items()) or "none"
    lines = [f"kernel {number}: {kernel.name}"]
    lines += [f"    {part}" for part in kernel.groups]
    lines += [f"    predicted: {'; '.join(_term(term) for term in kernel.predicted)}{_bound(kernel)}"]
    lines += [f"    moves: {'; '.join(map(str, part.movement))}" for part in kernel.groups if part.movement]
    if resources is not None:
        lines += [f"    ptxas: {resources}"]
    lines += [f"    measured: {measured}" for measured in kernel.measured]
    lines += [f"    edges inside: {handed}"]
    barriers = dict.fromkeys(edge.reason for edge in kernel.edges if edge.scope == "grid")
    lines += [f"    at grid: {reason}" for reason in barriers]
    places = Counter(edge.place for edge in kernel.edges if edge.place)
    lines += [f"    handed on in {place} ({count} x)" for place, count in places.items()]
    lines += [f"    numerics: {'; '.join(_numerics(kernel)) or 'every rounding and sum as in the model'}"]
    return lines + ([f"      {op}" for op in kernel.ops] if verbose else _ops(kernel))


def _ops(kernel: Kernel) -> list[str]:
    """Lists the ops by their names in the model: contractions one by one, the others together."""
    computing = [op for op in kernel.ops if not is_layout(op)] or list(kernel.ops)
    lines, names = [], {}
    for op in computing:
        name = op.location or f"{op.op}#{op.id}"
        if op.choices:
            lines.append(f"      {name}{op.choices}")
        names[name] = op
    return lines + textwrap.wrap(
        f"ops: {', '.join(names)}", _WIDTH, initial_indent="    ", subsequent_indent="      "
    )


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
