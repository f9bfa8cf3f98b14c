"""Work that a thread does in the background, one piece after another: compilations for shapes that calls have.

There is one such thread in a process, and it begins with the first piece of work. It, and the compiler's process that
it starts, have a lower priority than the calls that go on meanwhile. Both end with the process: when the interpreter
ends, the work is cancelled; when the process is killed, the kernel ends the compiler's process.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from typing import Protocol

from tilewright.runtime.at_exit import release_at_exit
from tilewright.system.deadline import Deadline

_LOWER_PRIORITY = 10
"""Steps of niceness by which the background gives way to calls."""
_LONGEST_WORK_SECONDS = 1800.0
"""Seconds after which a piece of work is ended, so that a compiler that hangs does not keep the others waiting."""
_LONGEST_WAIT_SECONDS = 2.0
"""Seconds to wait for cancelled work when the interpreter ends."""


class Work(Protocol):
    """A piece of work."""

    def __call__(self, deadline: Deadline) -> None:
        """Does it; raises nothing. It stops soon once the deadline is cancelled."""


class Background:
    """A thread with a queue."""

    def __init__(self) -> None:
        self._queue: deque[Work] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._deadline = Deadline(None)
        """Deadline of the work that is being done."""
        self._is_over = False

    def add(self, work: Work) -> None:
        """Adds work behind all that waits; it is dropped once the interpreter ends."""
        with self._changed:
            if self._is_over:
                return
            self._queue.append(work)
            if self._thread is None:
                release_at_exit(self)
                self._thread = threading.Thread(target=self._run, name="tilewright-background", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def release(self) -> None:
        """Drops what waits, and cancels what is being done."""
        with self._changed:
            self._is_over = True
            self._queue.clear()
            self._changed.notify_all()
            deadline = self._deadline
        deadline.cancel()
        if self._thread is not None:
            self._thread.join(_LONGEST_WAIT_SECONDS)

    def _run(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # only Linux has priorities of threads
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWER_PRIORITY)
        while True:
            with self._changed:
                while not self._queue and not self._is_over:
                    self._changed.wait()
                if self._is_over:
                    return
                work = self._queue.popleft()
                deadline = self._deadline = Deadline(_LONGEST_WORK_SECONDS)
            work(deadline)
            del work  # it may be the last to hold a program


background = Background()


def _start_anew() -> None:
    """Forgets the parent's thread in a forked process, which does not have it."""
    global background
    background = Background()


os.register_at_fork(after_in_child=_start_anew)
