"""Deadline of a compilation, and the error if it passes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

from tilewright.errors import CompileError, CompileTimeoutError


def checked_timeout(timeout: Any) -> float | None:
    """Returns a user's timeout in seconds (None: no limit). Raises `CompileError` if it is not a positive number."""
    if timeout is None:
        return None
    is_number = isinstance(timeout, Real) and not isinstance(timeout, bool)
    if not is_number or not 0 < float(timeout) < math.inf:
        raise CompileError(
            f"timeout={timeout!r} is not a valid time limit",
            hint="give a number of seconds above 0, or None for no limit",
        )
    return float(timeout)


class Deadline:
    """The end of a time limit; with None there is no limit. Another thread may cancel what is done before it."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._to_call: list[Callable[[], None]] = []

    def left(self) -> float | None:
        """Returns the seconds left, at least 0 and at most what a timer supports; None: no limit."""
        if self.seconds is None:
            return None
        return min(max(0.0, self._end - time.monotonic()), threading.TIMEOUT_MAX)

    def check(self, doing: str) -> None:
        """Raises `CompileTimeoutError` if the time is over; `doing` is the step that the message names."""
        if self._is_cancelled or time.monotonic() >= self._end:
            raise self.passed(doing)

    def cancel(self) -> None:
        """Makes every further check fail, and calls the functions that wait for that (`if_cancelled`)."""
        with self._lock:
            self._is_cancelled = True
            called, self._to_call = self._to_call, []
        for call in called:
            call()

    @contextmanager
    def if_cancelled(self, call: Callable[[], None]) -> Iterator[None]:
        """Has a function called, in the thread that cancels, if that happens in the `with` block or before it."""
        with self._lock:
            is_late = self._is_cancelled
            self._to_call.append(call)
        if is_late:
            call()
        try:
            yield
        finally:
            with self._lock:
                if call in self._to_call:
                    self._to_call.remove(call)

    def passed(self, doing: str) -> CompileTimeoutError:
        if self._is_cancelled:
            return CompileTimeoutError(f"the compilation was cancelled in: {doing}")
        return CompileTimeoutError(
            f"the compilation took longer than {self.seconds:g} s and was ended in: {doing}",
            hint="give it more time (--timeout, timeout=), or simplify the part of the model that it was compiling",
        )
