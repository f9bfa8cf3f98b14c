"""Measures times on a GPU: by its own clock, with cold caches (see `cold`), and as a caller sees them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

_SAMPLES = range(10, 201)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Median times in seconds."""

    kernel_s: float | None
    """GPU time from the first kernel's start to the last one's end; None if the system does not report it."""
    call_s: float
    """Host time from the call until the results are there."""
    samples: int
    launches_s: tuple[float, ...] = ()
    """GPU time of each launch by itself."""


def median_of(sample: Callable[[], float], *, seconds: float) -> tuple[float, int]:
    """Returns the median and number of the samples that fit the time, between 10 and 200; the first one warms up."""
    sample()
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < _SAMPLES.start or (time.perf_counter() < end and len(samples) < _SAMPLES.stop - 1):
        samples.append(sample())
    return statistics.median(samples), len(samples)


def host_seconds(
    call: Callable[[], None], wait: Callable[[], None], flush: Callable[[], None]
) -> Callable[[], float]:
    """Returns one sample of a whole call that starts with an idle GPU and a cold cache."""

    def sample() -> float:
        flush()
        wait()
        started = time.perf_counter()
        call()
        wait()
        return time.perf_counter() - started

    return sample
