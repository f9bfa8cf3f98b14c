"""Wait until the threads of this process stop spinning, so that a following measurement has the cores to itself."""

from __future__ import annotations

import time

_STEP_SECONDS = 4e-3
_BUSY_SHARE = 0.1
"""Fraction of a step's time; if the process uses more processor time, some thread is spinning."""


def wait_until_idle(*, limit: float = 0.5) -> None:
    """Waits until the process has used hardly any processor time for 4 ms, at most `limit` seconds.

    After a call, thread pools look for more work before they sleep: those of ONNX Runtime 1.31 for 40 ms. On a machine
    with as many threads as cores, a program that is timed meanwhile takes 1.5 times as long.
    """
    deadline = time.perf_counter() + limit
    busy = _STEP_SECONDS
    while busy > _BUSY_SHARE * _STEP_SECONDS and time.perf_counter() < deadline:
        before = time.process_time()
        time.sleep(_STEP_SECONDS)
        busy = time.process_time() - before
