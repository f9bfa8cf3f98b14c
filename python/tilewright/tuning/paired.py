"""Estimates how much faster one thing is than another from times that were taken in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.errors import InputError

_RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def paired_ratio(numerator: Sequence[float], denominator: Sequence[float], *, seed: int = 0) -> Interval:
    """Returns the median ratio of paired times with its 95% bootstrap confidence interval.

    Raises `InputError` if the sequences have different lengths.
    """
    if len(numerator) != len(denominator):
        raise InputError(f"{len(numerator)} times cannot be paired with {len(denominator)}")
    ratios = np.asarray(numerator) / np.asarray(denominator)
    rng = np.random.default_rng(seed)
    samples = np.median(rng.choice(ratios, (_RESAMPLES, len(ratios))), axis=1)
    low, high = np.percentile(samples, [2.5, 97.5])
    return Interval(float(np.median(ratios)), float(low), float(high))
