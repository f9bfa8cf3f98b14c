"""Decides which plan of a subprogram won, from times that were taken in turn."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence

from tilewright.records.plan import Plan
from tilewright.tuning.database import Decision
from tilewright.tuning.paired import paired_ratio


def decide(
    samples: Mapping[str, Sequence[float]],
    plans: Mapping[str, Plan],
    *,
    unmeasured: str,
    unfused: Collection[str],
    key: str,
    name: str,
    target: str,
    candidates: int,
    machine: str,
    measured_at: str,
    region_ops: int = 0,
    form: str = "",
) -> Decision:
    """Returns the fastest of the plans that are significantly faster than the unmeasured one; otherwise the
    unmeasured one. `unfused` are the plans that say what fusion gains."""
    ratios = {plan: paired_ratio(times, samples[unmeasured]) for plan, times in samples.items()}
    sure = [plan for plan in samples if plan != unmeasured and ratios[plan].high < 1.0]
    winner = min(sure, key=lambda plan: ratios[plan].value, default=unmeasured)
    apart = [statistics.median(times) for plan, times in samples.items() if plan in unfused]
    return Decision(
        key=key,
        name=name,
        target=target,
        plan=plans[winner],
        seconds=statistics.median(samples[winner]),
        unmeasured_seconds=statistics.median(samples[unmeasured]),
        unfused_seconds=min(apart, default=None),
        ratio=ratios[winner].value,
        ratio_low=ratios[winner].low,
        ratio_high=ratios[winner].high,
        candidates=candidates,
        machine=machine,
        measured_at=measured_at,
        region_ops=region_ops,
        form=form,
    )
