"""Child processes that end with the process that started them, however that ends.

A lifeline is a pipe. Only the parent holds its write end, and it never writes; the child holds the read end. When the
parent is gone, even by SIGKILL, the kernel closes the pipe and, as requested by `F_SETOWN` and `F_SETSIG`, sends
SIGKILL to the whole process group of the child. Nothing has to run in the child for that: it also ends programs that
know nothing of lifelines, and a process whose native code holds Python's lock, so that a thread that watches the pipe
would never run. PR_SET_PDEATHSIG is no alternative: it fires when the *thread* that started a process ends, and
compilations run in short-lived threads.
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
    """One child process, in a process group of its own, that ends with this process together with everything it
    starts."""

    def __init__(self) -> None:
        self.read_end, write_end = os.pipe()
        """The pipe's read end; it has the same number in the child, for `hold_on`."""
        self._close = weakref.finalize(self, os.close, write_end)
        _held.add(self)
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, command: Sequence[str], *, pass_fds: Sequence[int] = (), **arguments: Any
    ) -> subprocess.Popen[bytes]:
        """Starts the process, once; `arguments` are those of `subprocess.Popen`."""
        try:
            # A session of its own also shields the child from the terminal's signals: the parent decides what an
            # interrupt means.
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
        """Kills the process and everything it started, unless it has been waited for already."""
        process = self._process
        # A process that has not been waited for keeps its id, so no other group can have it.
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def end(self, *, after_it: bool = False) -> None:
        """Kills the process and everything it started, and waits; with `after_it`, waits first for the process to end
        by itself."""
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
    """Runs a program like `subprocess.run`; the program ends with this process, and its output is captured as text by
    default.

    A program can outlive this process only if this process ends between the start and the request to the kernel.

    Raises `subprocess.TimeoutExpired` after `timeout` seconds and, with `check`, `subprocess.CalledProcessError`.
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
    """Attaches this process, which was started with a lifeline; call it as early as possible.

    The parent has made the request to the kernel already, unless it ended before.
    """
    leads_group = os.getpgrp() == os.getpid()
    _hold(read_end, -os.getpid() if leads_group else os.getpid())


def end_with_parent() -> None:
    """Makes a process of `multiprocessing` or of a process pool end with its parent: pass this function as its
    initializer."""
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
    """Makes the kernel kill a process (or a group, if negative) when the pipe closes; returns False if that is not
    supported."""
    try:
        fcntl.fcntl(read_end, fcntl.F_SETOWN, owner)
        fcntl.fcntl(read_end, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(read_end, fcntl.F_SETFL, fcntl.fcntl(read_end, fcntl.F_GETFL) | os.O_ASYNC)
    except (OSError, AttributeError):
        return False  # This is not Linux, or a system that only resembles it.
    return True


def _watch(read_end: int, owner: int) -> None:
    """Polls the pipe and kills the owner when it closes; this is the fallback if the kernel does not do so."""
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
    """Closes the write ends in a forked child, which would otherwise keep them open."""
    for lifeline in list(_held):
        lifeline._close()


os.register_at_fork(after_in_child=_let_go)
