"""Waits for the threads of this process to stop spinning, so that what is timed next has the cores to itself."""

from __future__ import annotations

import time

_STEP_SECONDS = 4e-3
_BUSY_SHARE = 0.1
"""Of a step: more processor time than that, and some thread is spinning."""


def wait_until_idle(*, limit: float = 0.5) -> None:
    """Returns when the process used hardly any processor time for 4 ms, or after `limit` seconds.

    Thread pools look for more work after a call before they sleep: those of ONNX Runtime 1.31 for 40 ms. On a machine
    with as many threads as cores, whatever is timed meanwhile takes half as long again.
    """
    deadline = time.perf_counter() + limit
    busy = _STEP_SECONDS
    while busy > _BUSY_SHARE * _STEP_SECONDS and time.perf_counter() < deadline:
        before = time.process_time()
        time.sleep(_STEP_SECONDS)
        busy = time.process_time() - before
