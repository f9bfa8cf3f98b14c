"""When a compilation has to be done, and the error if it is not."""

from __future__ import annotations

import math
import threading
import time
from numbers import Real
from typing import Any

from tilewright.errors import CompileError, CompileTimeoutError


def checked_timeout(timeout: Any) -> float | None:
    """Seconds as a user gives them, None: no limit. Raises a `CompileError` for what is no time."""
    if timeout is None:
        return None
    is_number = isinstance(timeout, Real) and not isinstance(timeout, bool)
    if not is_number or not 0 < float(timeout) < math.inf:
        raise CompileError(
            f"timeout={timeout!r} is no time", hint="give a number of seconds above 0, or None for no limit"
        )
    return float(timeout)


class Deadline:
    """The end of the time that something may take; None: it may take for ever."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Seconds until then, at least 0, and as many as a timer can wait; None: no limit."""
        if self.seconds is None:
            return None
        return min(max(0.0, self._end - time.monotonic()), threading.TIMEOUT_MAX)

    def check(self, doing: str) -> None:
        """Raises `CompileTimeoutError` with what is or would be done where the time is over."""
        if time.monotonic() >= self._end:
            raise self.passed(doing)

    def passed(self, doing: str) -> CompileTimeoutError:
        return CompileTimeoutError(
            f"the compilation took longer than {self.seconds:g} s and was ended in: {doing}",
            hint="give it more time (--timeout, timeout=), or leave out what it was at",
        )
