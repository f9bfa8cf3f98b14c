"""Formats results as JSON and as a Markdown page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from benchmarks.bounds import bound_of
from benchmarks.peers import OURS
from benchmarks.rows import Mean, Row
from benchmarks.tables import table


@dataclass(frozen=True, kw_only=True)
class Report:
    """Conditions and results of a run."""

    date: str
    command: str
    machine: dict[str, Any]
    limits: dict[str, Any] | None
    versions: dict[str, str]
    settings: dict[str, Any]
    rows: list[Row]
    summary: list[Mean]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def to_markdown(report: Report) -> str:
    """Returns the whole report as Markdown."""
    parts = [
        f"# Benchmarks, {report.date}",
        _conditions(report),
        "## Ours beside each peer",
        _summary(report.summary),
        "## Where ours loses",
        _losses(report.rows),
        "## All workloads",
        *(
            _suite(name, list(rows), report.limits)
            for name, rows in groupby(report.rows, key=lambda r: (r.suite, r.dtype))
        ),
        "## What did not run",
        _failures(report.rows),
    ]
    return "\n\n".join(parts) + "\n"


def _conditions(report: Report) -> str:
    machine, versions = report.machine, ", ".join(f"{k} {v}" for k, v in sorted(report.versions.items()))
    lines = [
        f"- `{report.command}`",
        f"- {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}",
        f"- {versions}, Python {machine['python']}",
        "- " + ", ".join(f"{key}: {value}" for key, value in report.settings.items()),
    ]
    if report.limits:
        limits = report.limits
        lines.append(
            f"- at {report.settings['threads']} threads the machine's limits are {limits['fma_gflops']:.0f} GFLOP/s, "
            f"{limits['copy_gb_per_s']:.1f} GB/s copied, {limits['copy_non_temporal_gb_per_s']:.1f} GB/s with "
            "non-temporal stores"
        )
        lines += [
            f"- {level['name']}: {level['read_gb_per_s']:.1f} GB/s read, {level['copy_gb_per_s']:.1f} GB/s copied"
            for level in limits.get("levels", ())
        ]
    return "\n".join(lines)


def _summary(means: Sequence[Mean]) -> str:
    rows = [
        [
            mean.system,
            _figure(mean.ours_over_it, "{:.3f}"),
            str(mean.workloads),
            str(mean.ours_wins),
            str(mean.ours_loses),
            str(mean.failed),
        ]
        for mean in means
    ]
    note = "Geometric means of our time over theirs: below 1, ours is faster."
    header = ["system", "ours / it", "workloads", "ours faster", "ours slower", "not run"]
    return f"{note}\n\n{table(header, rows)}"


def _losses(rows: Sequence[Row]) -> str:
    lost = [r for r in rows if r.system == OURS and r.ratio_low is not None and r.ratio_low > 1.0]
    if not lost:
        return "Nowhere beyond the noise."
    by = {(row.workload, row.dtype, row.system): row for row in rows}
    cells = [
        [
            f"{row.workload} {row.dtype}",
            _ratio(row),
            row.ratio_of or "",
            row.best_peer or "",
            _microseconds(_time(row)),
            _microseconds(_time(by[row.workload, row.dtype, row.best_peer or ""], like=row)),
        ]
        for row in sorted(lost, key=lambda row: -(row.ratio_to_best_peer or 0.0))
    ]
    return table(["workload", "ours / best peer", "of", "best peer", "ours, µs", "peer, µs"], cells)


def _time(row: Row, *, like: Row | None = None) -> float | None:
    """Formats the time that the ratio of a row (or of `like`) compares."""
    return row.kernel_s if (like or row).ratio_of == "kernel" else row.median_s


def _suite(name: tuple[str, str], rows: Sequence[Row], limits: dict[str, Any] | None) -> str:
    systems = list(dict.fromkeys(row.system for row in rows))
    workloads = [list(group) for _, group in groupby(rows, key=lambda row: row.workload)]
    columns: list[tuple[str, Callable[[list[Row]], str]]] = [
        ("workload", lambda group: group[0].workload),
        ("ours / best peer", lambda group: _ratio(_find(group, OURS))),
        ("of", lambda group: _ratio_of(_find(group, OURS))),
        *((system, _times(system)) for system in systems),
        ("GB/s", lambda group: _bandwidth(_find(group, OURS))),
        ("GFLOP/s", lambda group: _gflops(_find(group, OURS), limits)),
        ("kernels", lambda group: _kernels(_find(group, OURS))),
        ("moved", lambda group: _moved(_find(group, OURS))),
        ("bound by", lambda group: _bound(_find(group, OURS), limits)),
    ]
    cells = [[column(group) for _, column in columns] for group in workloads]
    legend = (
        "µs of a call, and of its kernels in parentheses; GB/s: compulsory bytes in our time; "
        "GFLOP/s: of contractions in our time, and the share of the machine's limit in f32; moved: over compulsory; "
        "bound by: what needs the longest time at least, and that time over ours"
    )
    return f"### {name[0]}, {name[1]}\n\n{legend}\n\n{table([title for title, _ in columns], cells)}"


def _find(group: Sequence[Row], system: str) -> Row | None:
    return next((row for row in group if row.system == system), None)


def _times(system: str) -> Callable[[list[Row]], str]:
    def cell(group: list[Row]) -> str:
        row = _find(group, system)
        if row is None or row.status != "ok":
            return row.status if row else ""
        kernels = f" ({_microseconds(row.kernel_s)})" if row.kernel_s is not None else ""
        return _microseconds(row.median_s) + kernels

    return cell


def _ratio_of(row: Row | None) -> str:
    return (row.ratio_of or "") if row else ""


def _bandwidth(row: Row | None) -> str:
    seconds = _time(row) if row else None
    return f"{row.compulsory_bytes / seconds * 1e-9:.1f}" if row and seconds else ""


def _gflops(row: Row | None, limits: dict[str, Any] | None) -> str:
    if row is None or row.gflops is None:
        return ""
    share = f" ({row.gflops / limits['fma_gflops']:.0%})" if limits else ""
    return f"{row.gflops:.0f}{share}"


def _kernels(row: Row | None) -> str:
    return _figure(row.kernels, "{}") if row else ""


def _moved(row: Row | None) -> str:
    return f"{row.bytes_moved / row.compulsory_bytes:.2f}" if row and row.bytes_moved else ""


def _bound(row: Row | None, limits: dict[str, Any] | None) -> str:
    seconds = _time(row) if row else None
    if row is None or not seconds or not limits or "levels" not in limits:
        return ""  # older runs did not measure levels
    bound = bound_of(row, limits)
    return f"{bound.resource} ({bound.seconds / seconds:.0%})"


def _failures(rows: Sequence[Row]) -> str:
    failed = [row for row in rows if row.status != "ok"]
    if not failed:
        return "Everything ran."
    order = sorted(failed, key=lambda row: (row.system, row.status, row.reason))
    cells = []
    for (system, status, reason), group in groupby(order, key=lambda r: (r.system, r.status, r.reason)):
        names = [f"{row.workload} {row.dtype}" for row in group]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        cells.append([system, status, reason.replace("|", "\\|"), shown])
    return table(["system", "status", "reason", "workloads"], cells)


def _ratio(row: Row | None) -> str:
    if row is None or row.ratio_to_best_peer is None:
        return ""
    return f"{row.ratio_to_best_peer:.2f} [{row.ratio_low:.2f}, {row.ratio_high:.2f}]"


def _microseconds(seconds: float | None) -> str:
    return _figure(seconds and seconds * 1e6, "{:.1f}")


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
