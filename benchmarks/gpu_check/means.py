"""Compares our times with each peer's over many workloads: geometric means by suite, and matmuls by size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from benchmarks.gpu_check.worker import OURS, OURS_BARE, OURS_DIRECT, OURS_IREE, SYSTEMS, TORCH
from benchmarks.tables import table

PEERS = tuple(name for name in SYSTEMS if name not in OURS)
LARGE_SIZE = 1024
"""Least M, N and K from which a matmul should reach cuBLAS' speed."""
FEW_ROWS = 16

_Workload = Mapping[str, Any]
_SIZES = re.compile(r"(?:dense|matmul)-(\d+)x(\d+)x(\d+)")


def kernel_ratio(workload: _Workload, peer: str) -> float | None:
    """Returns the time of our kernels divided by a peer's.

    It is None if one of the two was not timed or our kernels are only a part of the workload.
    """
    theirs = workload["kernel_s"].get(peer)
    return workload["kernel_s"][OURS_BARE] / theirs if theirs and workload["ratio"] is not None else None


def call_ratio(workload: _Workload, peer: str) -> float | None:
    """Returns the time of our whole call divided by a peer's."""
    ours, theirs = call_seconds(workload["call_s"]), workload["call_s"].get(peer)
    return ours / theirs if ours and theirs else None


def call_seconds(calls: Mapping[str, float]) -> float | None:
    """Returns the time of a call of a program of ours: without IREE, where that was timed."""
    return calls.get(OURS_DIRECT, calls.get(OURS_IREE))


def means_by_suite(workloads: Sequence[_Workload]) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the geometric means of both ratios by suite and peer, with the number of workloads, over all types."""
    means: dict[str, dict[str, dict[str, Any]]] = {}
    for suite in dict.fromkeys(w["suite"] for w in workloads):
        here = [w for w in workloads if w["suite"] == suite]
        by_peer = {peer: _means(here, peer) for peer in PEERS}
        means[suite] = {peer: m for peer, m in by_peer.items() if m["kernels_over"] or m["calls_over"]}
    return means


def _means(workloads: Sequence[_Workload], peer: str) -> dict[str, Any]:
    kernels = _ratios(workloads, peer, kernel_ratio)
    calls = _ratios(workloads, peer, call_ratio)
    return {
        "kernels": geometric_mean(kernels) if kernels else None,
        "kernels_over": len(kernels),
        "calls": geometric_mean(calls) if calls else None,
        "calls_over": len(calls),
    }


def _ratios(
    workloads: Sequence[_Workload], peer: str, ratio: Callable[[_Workload, str], float | None]
) -> list[float]:
    return [r for w in workloads if (r := ratio(w, peer)) is not None]


def matmul_figures(workloads: Sequence[_Workload]) -> dict[str, float | None]:
    """Returns figures of the matmul suites against PyTorch, which calls cuBLAS: how fast large and flat matmuls are."""
    sized = list(_sized(workloads))
    large = [w for w, sizes in sized if w["dtype"] == "f16" and min(sizes) >= LARGE_SIZE]
    flat = _ratios([w for w, (rows, _, _) in sized if rows <= FEW_ROWS], TORCH, kernel_ratio)
    shares = [1 / ratio for ratio in _ratios(large, TORCH, kernel_ratio)]
    return {
        f"least_share_of_cublas_speed_f16_from_{LARGE_SIZE}": min(shares, default=None),
        f"mean_ratio_to_cublas_up_to_{FEW_ROWS}_rows": geometric_mean(flat) if flat else None,
        f"worst_ratio_to_cublas_up_to_{FEW_ROWS}_rows": max(flat, default=None),
    }


def _sized(workloads: Sequence[_Workload]) -> Iterator[tuple[_Workload, tuple[int, int, int]]]:
    """Yields matmuls with their rows, fan-in and fan-out, which end their names."""
    for workload in workloads:
        sizes = _SIZES.fullmatch(workload["workload"])
        if sizes and workload["suite"].startswith("gemm"):
            rows, fan_in, fan_out = map(int, sizes.groups())
            yield workload, (rows, fan_in, fan_out)


def means_table(means: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Formats two rows per suite, for kernels and for calls; each cell has the mean and the number of workloads."""
    peers = [peer for peer in PEERS if any(peer in by_peer for by_peer in means.values())]
    rows = [
        [f"{suite}, {of}", *(_cell(by_peer.get(peer), of) for peer in peers)]
        for suite, by_peer in means.items()
        for of in ("kernels", "calls")
    ]
    return table(["suite", *peers], rows) if peers else "No peer was timed."


def _cell(means: Mapping[str, Any] | None, of: str) -> str:
    return f"{means[of]:.2f} ({means[of + '_over']})" if means and means[of] is not None else ""
