"""Plots our time over the best peer's for every workload, with its confidence interval."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import OURS
from benchmarks.report import Report

_INCHES_OF_ROW = 0.17


def plot(report: Report, path: Path) -> None:
    """Writes the plot; the suffix of the path selects the format."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [row for row in report.rows if row.system == OURS and row.ratio_to_best_peer is not None]
    rows.sort(key=lambda row: row.ratio_to_best_peer or 0.0, reverse=True)
    figure, axes = pyplot.subplots(figsize=(8, 1.5 + _INCHES_OF_ROW * len(rows)), layout="constrained")
    for place, row in enumerate(rows):
        ratio, low, high = row.ratio_to_best_peer, row.ratio_low, row.ratio_high
        assert ratio is not None and low is not None and high is not None
        color = "tab:green" if high < 1 else "tab:red" if low > 1 else "tab:gray"
        axes.errorbar(
            ratio, place, xerr=[[max(0.0, ratio - low)], [max(0.0, high - ratio)]], fmt="o", ms=3, color=color
        )
    labels = [f"{row.workload} {row.dtype} ({row.best_peer})" for row in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=6)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel(
        f"our time / best peer's, {report.settings['threads']} threads (left of 1: ours is faster)"
    )
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
