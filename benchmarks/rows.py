"""From samples to a table: medians, times of kernels apart from calls, ratios with their intervals, means."""

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
    """One system on one workload. Times are seconds; None where there is no such figure."""

    suite: str
    workload: str
    dtype: str
    system: str
    status: str
    """ok, or what failed: not installed, unsupported, wrong, crashed, timed out."""
    reason: str
    """Why the status is not ok, or why there is no kernel time."""
    median_s: float | None = None
    """Of a whole call."""
    kernel_s: float | None = None
    """Of one repetition inside a program: a call without its fixed cost."""
    ratio_to_best_peer: float | None = None
    """This system's time over the best peer's, paired by turns; below 1, this one is faster."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    ratio_of: str | None = None
    """Which times the ratio is of: kernel or call."""
    best_peer: str | None = None
    kernels: int | None = None
    """That a call launches."""
    bytes_moved: int | None = None
    """That the kernels load and store in a call."""
    compulsory_bytes: int
    """Each input, weight and output once."""
    contraction_flops: int
    """Multiplications and additions of its contractions."""
    gflops: float | None = None
    """Of its contractions, per second of `kernel_s`, or of `median_s` where that is null."""
    max_rel_error: float | None = None
    """The largest ‖y − y64‖ / ‖y64‖ of any output in any round."""
    turns: int = 0
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A system beside ours over all workloads that both ran."""

    system: str
    workloads: int
    failed: int
    """Workloads that this system did not run, or ran wrongly."""
    ours_over_it: float | None
    """Geometric mean of our time over its time; below 1, ours is faster."""
    ours_wins: int
    """Workloads where the whole interval is below 1."""
    ours_loses: int
    """Workloads where the whole interval is above 1."""


BEST_PEER = "best peer"


def make_rows(results: Sequence[Result]) -> list[Row]:
    """Rows of all workloads, in order; systems in the order that they were given."""
    return [row for result in results for row in _rows_of(result)]


def summarize(results: Sequence[Result], systems: Sequence[str]) -> list[Mean]:
    """Ours beside every peer, the strongest peer first, and beside whichever peer is best on each workload."""
    peers = [name for name in systems if name != OURS]
    means = [_mean(name, [_against(result, name) for result in results]) for name in peers]
    best = _mean(BEST_PEER, [_against(result, _best_peer(result)) for result in results])
    return [best, *sorted(means, key=lambda mean: -(mean.ours_over_it or 0.0))]


# Times.


def kernel_seconds(record: Record) -> list[float] | None:
    """Of every turn, the slope over repetitions; where a system merges them, the call without its fixed cost."""
    facts = record.facts or Facts()
    if record.samples and all(set(sample) == set(COUNTS) for sample in record.samples):
        return [_slope(sample) - facts.barrier_seconds for sample in record.samples]
    fixed = facts.extra.get("fixed_seconds")
    if record.no_slope and fixed is not None:
        return [sample[1] - fixed for sample in record.samples]
    return None


def _slope(sample: dict[int, float]) -> float:
    """A program without repetitions is left out: it may run on fewer threads."""
    repeated = COUNTS[1:]
    return float(np.polyfit(repeated, [sample[count] for count in repeated], 1)[0])


def _call_seconds(record: Record) -> list[float]:
    return [sample[1] for sample in record.samples]


def _paired(result: Result, first: str, second: str) -> tuple[Interval, str]:
    """The ratio of their times, and which times: of kernels where calls are short and both have them."""
    records = result.records[first], result.records[second]
    kernels = [kernel_seconds(record) for record in records]
    if result.is_short and kernels[0] and kernels[1]:
        # An interrupt in a call with few repetitions can turn a slope negative; such a turn says nothing.
        sound = [pair for pair in zip(kernels[0], kernels[1], strict=True) if min(pair) > 0]
        if 2 * len(sound) > len(kernels[0]):
            return paired_ratio(*zip(*sound, strict=True)), "kernel"
    return paired_ratio(_call_seconds(records[0]), _call_seconds(records[1])), "call"


def _is_timed(result: Result, system: str) -> bool:
    record = result.records.get(system)
    return record is not None and record.status == "ok" and bool(record.samples)


def _best_peer(result: Result) -> str | None:
    """The peer that ours is slowest beside; where ours is not timed, the one with the shortest call."""
    peers = [
        name for name in result.records if name != OURS and name not in LIMITS and _is_timed(result, name)
    ]
    if not peers:
        return None
    if _is_timed(result, OURS):
        return max(peers, key=lambda name: _paired(result, OURS, name)[0].value)
    return min(peers, key=lambda name: np.median(_call_seconds(result.records[name])))


# Tables.


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
    """None where noise outweighs the slope."""
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
