"""Traces of calls: where their time goes, for https://ui.perfetto.dev or chrome://tracing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import OutputError
from tilewright.system.outputs import refuse_special


@dataclass(frozen=True)
class Span:
    """A part of a call: the whole of it, or the part that a thread has of a kernel."""

    name: str
    thread: int
    """Number of the thread in the program; 0 is the caller's."""
    start: float
    """Seconds on the clock of `time.perf_counter`."""
    end: float


def save_trace(path: Path, spans: Sequence[Span]) -> None:
    """Writes a trace in Chrome's JSON format. Raises `OutputError` if it cannot be written."""
    refuse_special(path)
    origin = min((span.start for span in spans), default=0.0)
    events = [
        {
            "name": span.name,
            "ph": "X",
            "pid": 1,
            "tid": span.thread,
            "ts": (span.start - origin) * 1e6,
            "dur": (span.end - span.start) * 1e6,
        }
        for span in spans
    ]
    try:
        path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None
