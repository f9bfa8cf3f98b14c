"""A timed workload has the cores to itself."""

from __future__ import annotations

import pytest
from tilewright.system import idle


class _Clock:
    """A process that spins until `spins` seconds have passed."""

    def __init__(self, spins: float) -> None:
        self.now, self._spins = 0.0, spins

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return min(self.now, self._spins)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("spins", "least", "most"), [(0.0, 0.0, 0.005), (0.04, 0.04, 0.05), (9.0, 0.5, 0.51)]
)
def test_waits_as_long_as_threads_spin_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, spins: float, least: float, most: float
) -> None:
    clock = _Clock(spins)
    monkeypatch.setattr(idle, "time", clock)
    idle.wait_until_idle()
    assert least <= clock.now <= most
