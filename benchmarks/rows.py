"""Turns samples into a table: medians, kernel and call times, ratios with confidence intervals, and means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tilewright.tuning.paired import Interval, paired_ratio

from benchmarks.measure import Record, Result
from benchmarks.peers import LIMITS, OURS, Facts
from benchmarks.repetition import COUNTS


@dataclass(frozen=True, kw_only=True)
class Row:
    """One system on one workload. Times are in seconds; None if there is no such figure."""

    suite: str
    workload: str
    dtype: str
    system: str
    status: str
    """ok, or what failed: not installed, unsupported, wrong, crashed, timed out."""
    reason: str
    """Reason why the status is not ok, or why there is no kernel time."""
    median_s: float | None = None
    """Seconds of a whole call."""
    kernel_s: float | None = None
    """Seconds of one repetition inside a program, which is a call without its fixed cost."""
    ratio_to_best_peer: float | None = None
    """This system's time over the best peer's, paired by turns; below 1, this system is faster."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    ratio_of: str | None = None
    """Times that the ratio compares: "kernel" or "call"."""
    best_peer: str | None = None
    kernels: int | None = None
    """Kernels that a call launches."""
    bytes_moved: int | None = None
    """Bytes that the kernels load and store in a call."""
    compulsory_bytes: int
    """Bytes of each input, weight and output, counted once."""
    contraction_flops: int
    """Multiplications and additions of its contractions."""
    gflops: float | None = None
    """Operations of its contractions per second of `kernel_s`, or of `median_s` if that is null."""
    max_rel_error: float | None = None
    """The largest ‖y − y64‖ / ‖y64‖ of any output in any round."""
    turns: int = 0
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A system compared with ours over all workloads that both ran."""

    system: str
    workloads: int
    failed: int
    """Workloads that this system did not run, or computed wrongly."""
    ours_over_it: float | None
    """Geometric mean of our time over this system's; below 1, ours is faster."""
    ours_wins: int
    """Workloads whose whole interval is below 1."""
    ours_loses: int
    """Workloads whose whole interval is above 1."""


BEST_PEER = "best peer"


def make_rows(results: Sequence[Result]) -> list[Row]:
    """Returns the rows of all workloads, in order; systems are in the given order."""
    return [row for result in results for row in _rows_of(result)]


def summarize(results: Sequence[Result], systems: Sequence[str]) -> list[Mean]:
    """Compares ours with every peer, the strongest first, and with the best peer of each workload."""
    peers = [name for name in systems if name != OURS]
    means = [_mean(name, [_against(result, name) for result in results]) for name in peers]
    best = _mean(BEST_PEER, [_against(result, _best_peer(result)) for result in results])
    return [best, *sorted(means, key=lambda mean: -(mean.ours_over_it or 0.0))]


# Times


def kernel_seconds(record: Record) -> list[float] | None:
    """Returns the slope over repetitions for every turn; if a system merges repetitions, the call without its fixed
    cost."""
    facts = record.facts or Facts()
    if record.samples and all(set(sample) == set(COUNTS) for sample in record.samples):
        return [_slope(sample) - facts.barrier_seconds for sample in record.samples]
    fixed = facts.extra.get("fixed_seconds")
    if record.no_slope and fixed is not None:
        return [sample[1] - fixed for sample in record.samples]
    return None


def _slope(sample: dict[int, float]) -> float:
    """Fits the slope. The program without repetitions is left out, because it may run on fewer threads."""
    repeated = COUNTS[1:]
    return float(np.polyfit(repeated, [sample[count] for count in repeated], 1)[0])


def _call_seconds(record: Record) -> list[float]:
    return [sample[1] for sample in record.samples]


def _paired(result: Result, first: str, second: str) -> tuple[Interval, str]:
    """Returns the ratio of two systems' times and which times it compares: those of kernels if calls are short and
    both have them."""
    records = result.records[first], result.records[second]
    kernels = [kernel_seconds(record) for record in records]
    if result.is_short and kernels[0] and kernels[1]:
        # An interrupt in a call with few repetitions can make a slope negative; such a turn is ignored.
        sound = [pair for pair in zip(kernels[0], kernels[1], strict=True) if min(pair) > 0]
        if 2 * len(sound) > len(kernels[0]):
            return paired_ratio(*zip(*sound, strict=True)), "kernel"
    return paired_ratio(_call_seconds(records[0]), _call_seconds(records[1])), "call"


def _is_timed(result: Result, system: str) -> bool:
    record = result.records.get(system)
    return record is not None and record.status == "ok" and bool(record.samples)


def _best_peer(result: Result) -> str | None:
    """Returns the peer that beats ours by most; if ours is not timed, the one with the shortest call."""
    peers = [
        name for name in result.records if name != OURS and name not in LIMITS and _is_timed(result, name)
    ]
    if not peers:
        return None
    if _is_timed(result, OURS):
        return max(peers, key=lambda name: _paired(result, OURS, name)[0].value)
    return min(peers, key=lambda name: np.median(_call_seconds(result.records[name])))


# Tables


def _rows_of(result: Result) -> list[Row]:
    best = _best_peer(result)
    return [_row(result, name, best) for name in result.records]


def _row(result: Result, system: str, best: str | None) -> Row:
    record = result.records[system]
    workload, facts = result.workload, record.facts or Facts()
    is_timed = _is_timed(result, system)
    kernels = kernel_seconds(record) if is_timed else None
    median_s = float(np.median(_call_seconds(record))) if is_timed else None
    kernel_s = _positive(np.median(kernels)) if kernels else None
    ratio, ratio_of = _paired(result, system, best) if is_timed and best is not None else (None, None)
    return Row(
        suite=workload.suite,
        workload=workload.name,
        dtype=workload.dtype,
        system=system,
        status=record.status,
        reason=record.reason or record.no_slope,
        median_s=median_s,
        kernel_s=kernel_s,
        ratio_to_best_peer=ratio.value if ratio else None,
        ratio_low=ratio.low if ratio else None,
        ratio_high=ratio.high if ratio else None,
        ratio_of=ratio_of,
        best_peer=best,
        kernels=facts.kernels,
        bytes_moved=facts.bytes_moved,
        compulsory_bytes=result.compulsory_bytes,
        contraction_flops=result.contraction_flops,
        gflops=_gflops(result.contraction_flops, kernel_s or median_s),
        max_rel_error=record.max_rel_error if np.isfinite(record.max_rel_error or 0.0) else None,
        turns=len(record.samples),
        detail=facts.detail,
    )


def _gflops(flops: int, seconds: float | None) -> float | None:
    return flops / seconds * 1e-9 if flops and seconds else None


def _positive(seconds: np.floating[Any]) -> float | None:
    """Returns None if noise exceeds the slope."""
    return float(seconds) if seconds > 0 else None


def _against(result: Result, peer: str | None) -> Interval | None:
    if peer is None or not _is_timed(result, peer) or not _is_timed(result, OURS):
        return None
    return _paired(result, OURS, peer)[0]


def _mean(system: str, ratios: Sequence[Interval | None]) -> Mean:
    timed = [ratio for ratio in ratios if ratio is not None]
    return Mean(
        system=system,
        workloads=len(timed),
        failed=len(ratios) - len(timed),
        ours_over_it=float(np.exp(np.mean([np.log(ratio.value) for ratio in timed]))) if timed else None,
        ours_wins=sum(ratio.high < 1.0 for ratio in timed),
        ours_loses=sum(ratio.low > 1.0 for ratio in timed),
    )
