"""Processes that end with the one that started them, however that one ends.

A lifeline is a pipe. The starter alone holds the end for writing and never writes; the process that it starts holds the
end for reading. When the starter is gone, be it by SIGKILL, the kernel closes the pipe and, as it was asked to
(`F_SETOWN`, `F_SETSIG`), sends SIGKILL to the whole process group at the other end. Nothing has to run there for that:
it also ends programs that know nothing of lifelines, and a process whose native code holds Python's lock, in which a
thread that watches the pipe would never get a turn. PR_SET_PDEATHSIG would not do: it fires when the *thread* that
started a process ends, and compilations run in threads that come and go.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import select
import signal
import subprocess
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any


class Lifeline:
    """One process, with whatever it starts, in a process group of its own that ends with this process."""

    def __init__(self) -> None:
        self.read_end, write_end = os.pipe()
        """The number that the pipe's end has in the process, too, for it to `hold_on`."""
        self._close = weakref.finalize(self, os.close, write_end)
        _held.add(self)
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, command: Sequence[str], *, pass_fds: Sequence[int] = (), **arguments: Any
    ) -> subprocess.Popen[bytes]:
        """Starts the process, once; `arguments` are those of `subprocess.Popen`."""
        try:
            # A session of its own also keeps the terminal's signals away: the starter decides what an interrupt means.
            process = subprocess.Popen(
                command, start_new_session=True, pass_fds=(*pass_fds, self.read_end), **arguments
            )
        except BaseException:
            self._close()
            raise
        else:
            _arm(self.read_end, -process.pid)
        finally:
            os.close(self.read_end)
        self._process = process
        return process

    def kill(self) -> None:
        """Kills the process and whatever it started, unless somebody has waited for it already."""
        process = self._process
        # A process that nobody has waited for keeps its number, so that no other group can have it.
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def end(self, *, after_it: bool = False) -> None:
        """Kills the process and what it started, and waits; `after_it`: once it has ended by itself."""
        process = self._process
        if process is not None:
            if after_it and process.returncode is None:
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            self.kill()
            process.wait()
        self._close()


def run(
    command: Sequence[str], *, check: bool = False, timeout: float | None = None, **arguments: Any
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` for a program that ends with this process; it captures text where nothing else is said.

    Only in the instant between its start and the request to the kernel can this process end without it.

    Raises `subprocess.TimeoutExpired` after so many seconds, and with `check` `subprocess.CalledProcessError`.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    lifeline = Lifeline()
    with lifeline.start(command, **(pipes | arguments)) as process:
        try:
            printed = process.communicate(timeout=timeout)
        finally:
            lifeline.end()
    out, errors = ((text or b"").decode(errors="replace") for text in printed)
    done = subprocess.CompletedProcess(command, process.returncode, out, errors)
    if check:
        done.check_returncode()
    return done


def hold_on(read_end: int) -> None:
    """Called in a process that was started with a lifeline, as early as possible.

    The starter has asked the kernel already, unless it ended before it could.
    """
    leads_group = os.getpgrp() == os.getpid()
    _hold(read_end, -os.getpid() if leads_group else os.getpid())


def end_with_parent() -> None:
    """The same for a process of `multiprocessing` or a pool of processes: give this as its initializer."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "no process of multiprocessing"
    _hold(parent.sentinel, os.getpid())


def _hold(read_end: int, owner: int) -> None:
    armed = _arm(read_end, owner)
    if _is_cut(read_end, seconds=0):
        _kill(owner)
    if not armed:
        threading.Thread(target=_watch, args=(read_end, owner), daemon=True).start()


def _arm(read_end: int, owner: int) -> bool:
    """Has the kernel kill a process, or a group, which is negative, when the pipe is closed; whether it can."""
    try:
        fcntl.fcntl(read_end, fcntl.F_SETOWN, owner)
        fcntl.fcntl(read_end, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(read_end, fcntl.F_SETFL, fcntl.fcntl(read_end, fcntl.F_GETFL) | os.O_ASYNC)
    except (OSError, AttributeError):
        return False  # Not Linux, or something that only resembles it.
    return True


def _watch(read_end: int, owner: int) -> None:
    """The second best, where the kernel does not do it."""
    while not _is_cut(read_end, seconds=None):
        pass
    _kill(owner)


def _is_cut(read_end: int, *, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(read_end, select.POLLHUP)
    return bool(poll.poll(None if seconds is None else seconds * 1e3))


def _kill(owner: int) -> None:
    if owner < 0:
        os.killpg(-owner, signal.SIGKILL)
    else:
        os.kill(owner, signal.SIGKILL)


_held: weakref.WeakSet[Lifeline] = weakref.WeakSet()


def _let_go() -> None:
    """A fork must not keep the ends for writing open."""
    for lifeline in list(_held):
        lifeline._close()


os.register_at_fork(after_in_child=_let_go)
