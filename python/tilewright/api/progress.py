"""Says how far a compilation is: its steps, and within a step the pass or the kernel that the worker is at."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tilewright.system.deadline import Deadline

Progress = Callable[[str], None]
"""Callback that receives the name of every step, and of what is done in it."""

_LOOK_SECONDS = 0.25
"""Seconds between two looks at what the worker does."""


class Steps:
    """Reports the steps of one compilation, and ends it between steps once its deadline is over."""

    def __init__(self, progress: Progress | None, deadline: Deadline) -> None:
        self._progress, self._deadline = progress, deadline
        self._step = ""

    def report(self, step: str) -> None:
        """Begins a step. Raises `CompileTimeoutError` at the deadline."""
        self._deadline.check(step)
        self._step = step
        if self._progress is not None:
            self._progress(step)

    @contextmanager
    def watch(self, doing: Callable[[], str]) -> Iterator[None]:
        """Reports what is done in the current step as well, as long as the block runs."""
        progress = self._progress
        if progress is None:
            yield
            return
        is_over = threading.Event()

        def look() -> None:
            last = ""
            while not is_over.wait(_LOOK_SECONDS):
                detail = detail_of(doing())
                if detail and (shown := f"{self._step}: {detail}") != last:
                    progress(shown)
                    last = shown

        thread = threading.Thread(target=look, name="tilewright-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def detail_of(doing: str) -> str:
    """Shortens a worker's note to what a reader follows: "kernel 3 of 12", "planning", or a phase of IREE."""
    if kernel := re.search(r"kernel \d+ of \d+$", doing):
        return kernel[0]
    if "'tile-form-subprograms'" in doing:
        return "planning"
    if found := re.match(r"pass '(?:tile-)?([\w-]+)'", doing):
        return found[1].replace("-", " ")
    return doing if doing.startswith("IREE's phase") else ""
