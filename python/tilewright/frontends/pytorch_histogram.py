"""ATen's histograms by comparisons, which IREE's importer lacks."""

from __future__ import annotations

from typing import Any

import torch


def histogram(x: Any, bins: int = 100, low: float = 0, high: float = 0) -> Any:
    """Counts the elements of equal intervals from `low` to `high`, or of those from the least to the largest element if
    both are equal."""
    if not x.is_floating_point() or x.numel() == 0:
        return NotImplemented
    x = x.reshape(-1)
    least, most = (torch.full((), bound, dtype=x.dtype) for bound in (low, high))
    if low == high:
        least, most = x.amin(), x.amax()
        least, most = torch.where(least == most, least - 1, least), torch.where(least == most, most + 1, most)
    is_inside = (x >= least) & (x <= most)
    interval = ((x - least) * bins / (most - least)).clamp(max=bins - 1)
    # Numbers outside are in no interval.
    interval = torch.where(is_inside, interval, -1).to(torch.int64)
    counted = interval.unsqueeze(0) == torch.arange(bins).unsqueeze(1)
    return counted.sum(1).to(x.dtype)
