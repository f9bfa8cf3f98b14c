"""Tests of random graphs for GPUs on the simulated device: numbers as on CPUs, and no detector fires.

The number of graphs is limited by time; `python -m fuzz --device sim:h200` judges more. See docs/design/testing.md.
"""

from __future__ import annotations

import os

import pytest

from fuzz.hunt import hunt

_SECONDS, _LANDING_SECONDS = 90.0, 8.0
_MOST_SEEDS = range(1 << 16)
# IREE computes a part of the other graphs, which is not simulated.
_LEAST_SHARE_OF_GRAPHS = 0.85


def test_results_staged_in_place_do_not_overwrite_what_others_read() -> None:
    """The graph has a softmax and a layer norm of the same row; the first result overwrites the row in shared
    memory."""
    outcome = hunt(range(330, 331), target="sim:h200", jobs=1, progress=lambda outcome: None)
    assert outcome.findings == []
    assert list(outcome.verdicts) == [330]


def test_random_graphs_match_float64_and_no_detector_fires(request: pytest.FixtureRequest) -> None:
    seconds = _SECONDS if request.config.getoption("--all") else _LANDING_SECONDS
    cores = len(os.sched_getaffinity(0))
    outcome = hunt(_MOST_SEEDS, target="sim:h200", jobs=cores, progress=lambda outcome: None, seconds=seconds)
    assert outcome.findings == []
    counted = sum(verdict.counts for verdict in outcome.verdicts.values())
    assert counted >= _LEAST_SHARE_OF_GRAPHS * len(outcome.verdicts) > 0
