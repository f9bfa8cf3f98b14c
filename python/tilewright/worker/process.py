"""The user's side of the worker process, which starts at the first request and is replaced after it dies."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from tilewright.errors import TilewrightError
from tilewright.system.deadline import Deadline
from tilewright.system.lifeline import Lifeline
from tilewright.worker.doing import read_doing, write_doing
from tilewright.worker.wire import read_message, write_message

_LEAST_FREE_BYTES = 1 << 16
"""If a process dies while its folder's disk has less free space than this, the full disk is the cause."""


OnCall: TypeAlias = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]
"""A function that answers a worker's calls: it takes and returns a header and bytes."""


class WorkerDied(Exception):
    """A request ended the process. `how` is for a message, `log` is the output of the process."""

    def __init__(self, how: str, log: str) -> None:
        super().__init__(how)
        self.how = how
        self.log = log


class WorkerTooSlow(WorkerDied):
    """A request took longer than its limit, so the process was ended."""


class Worker:
    """A process with both compilers in it. It runs one request at a time.

    Files that the compilers leave behind when they die (objects, backtraces) stay in `folder`. `module` is run to
    answer the requests; it may be in one of the folders `search`. It imports the modules `imports` when it starts, so
    that this is done when the first request arrives. The process, and everything it started, ends if a
    request takes longer than the limit or passes the deadline, and if this process ends for any reason (see
    `tilewright.system.lifeline`).
    """

    def __init__(
        self,
        folder: Path,
        *,
        module: str = "tilewright.worker",
        search: Sequence[Path] = (),
        limit_seconds: float | None = None,
        deadline: Deadline | None = None,
        imports: Sequence[str] = (),
    ) -> None:
        self._folder = folder
        self._imports = imports
        self._module = module
        self._search = search
        self._limit_seconds = limit_seconds
        self.deadline = deadline or Deadline(None)
        """Deadline of the compilation that the next requests belong to."""
        self.deaths = 0
        """Number of processes that ended in a request of this compilation."""
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: Lifeline | None = None
        self._started_with: dict[str, str] = {}
        self._log = tempfile.TemporaryFile(prefix="tilewright-worker-")  # noqa: SIM115 - closed with the worker
        self._doing = tempfile.TemporaryFile(prefix="tilewright-worker-")  # noqa: SIM115 - closed with the worker

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(kill=error is not None)
        self._log.close()
        self._doing.close()

    def doing(self) -> str:
        """Returns what the process does now: a step, or the pass and the kernel that are running."""
        return read_doing(self._doing.fileno())

    def ask(
        self,
        header: dict[str, Any],
        blob: bytes = b"",
        *,
        on_call: OnCall | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> tuple[dict[str, Any], bytes, str]:
        """Sends a request; returns the answer, its bytes, and the text printed meanwhile.

        `on_call` answers calls that the worker makes before it has its own answer (`tilewright.worker.calls`), and
        `meanwhile` is called once the worker has the request. If one of them raises an exception, the process is ended.

        The header's "request" names the function that answers, as "module:function"; its "step" says what that
        function does, for the message if it takes too long.

        Raises `WorkerDied`, `CompileTimeoutError` at the deadline, and `OSError` if the disk of its folder is full.
        """
        step = header.get("step", f"the request '{header['request']}'")
        self.deadline.check(step)
        write_doing(self._doing.fileno(), step)
        process = self._started()
        environment = {**_environment(), "TMPDIR": str(self._folder)}
        header = {**header, "surroundings": {"environment": environment, "directory": _directory()}}
        assert process.stdin is not None and process.stdout is not None and self._lifeline is not None
        self._log.seek(0)
        self._log.truncate()
        limit = _Limit(self._lifeline, self._limit_seconds, self.deadline)
        try:
            with limit, self.deadline.if_cancelled(limit.cancel):
                write_message(process.stdin, header, blob)
                if meanwhile is not None:
                    meanwhile()
                message = read_message(process.stdout)
                while message is not None and "call" in message[0]:
                    assert on_call is not None, "only a request with stages makes calls"
                    write_message(process.stdin, *on_call(*message))
                    message = read_message(process.stdout)
        except BrokenPipeError:
            message = None
        except BaseException:
            # After an interrupt in the middle of a message, further messages would be out of step.
            self.close(kill=True)
            raise
        self._log.seek(0)
        log = self._log.read().decode(errors="replace")
        if message is None or limit.passed:
            self.close(kill=limit.passed)
        if message is None:
            self.deaths += 1
            if limit.passed:
                doing = read_doing(self._doing.fileno())
                if limit.is_deadline:
                    raise self.deadline.passed(doing)
                raise WorkerTooSlow(f"took longer than {self._limit_seconds:g} s, in: {doing}", log)
            if shutil.disk_usage(self._folder).free < _LEAST_FREE_BYTES:
                # LLVM ends the process if it cannot write.
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))
            raise WorkerDied(_how(process.returncode), log)
        return message[0], message[1], log

    def serve(self, folder: Path, deadline: Deadline | None = None) -> bool:
        """Makes the next requests run in another folder; returns True if a process is running that behaves like one
        started now."""
        self._folder = folder
        self.deadline = deadline or Deadline(None)
        self.deaths = 0
        is_there = self._process is not None and self._process.poll() is None
        return is_there and self._started_with == _read_at_start(_environment())

    def start(self) -> None:
        """Starts the process now instead of at the first request."""
        self._started()

    def close(self, *, kill: bool = False) -> None:
        """Ends the process, at once or after its request."""
        process, self._process = self._process, None
        lifeline, self._lifeline = self._lifeline, None
        if process is None or lifeline is None:
            return
        if kill:
            lifeline.end()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    # It died with a half-written request, which is the reason why it is closed.
                    continue
        lifeline.end(after_it=True)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # The worker must find this very package, even if it was put on the path by hand.
            package_parent = str(Path(__file__).parents[2])
            environment = _environment()
            self._started_with = _read_at_start(environment)
            folders = [*map(str, self._search), package_parent, environment.get("PYTHONPATH")]
            search = os.pathsep.join(filter(None, folders))
            self._lifeline, doing = Lifeline(), self._doing.fileno()
            self._process = self._lifeline.start(
                [
                    *(sys.executable, "-m", self._module),
                    *(str(self._lifeline.read_end), str(doing)),
                    *self._imports,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env={**environment, "PYTHONPATH": search},
                pass_fds=(doing,),
            )
        return self._process


_kept: list[Worker] | None = None
"""Workers that wait for the next compilation; None if `keep_compilers` is not active."""
_keeping = threading.Lock()


def _forget_kept() -> None:
    """Forgets the parent's workers in a forked process: two processes that use one worker would get each other's
    answers."""
    global _kept, _keeping
    _keeping = threading.Lock()
    _kept = None if _kept is None else []


os.register_at_fork(after_in_child=_forget_kept)


@contextmanager
def keep_compilers() -> Iterator[None]:
    """Keeps the compilers' processes for the next compilation, which saves starting them.

    As many processes wait as compilations ran at the same time, until the outermost `with` block ends.
    """
    global _kept
    with _keeping:
        is_outermost = _kept is None
        if is_outermost:
            _kept = []
    try:
        yield
    finally:
        if is_outermost:
            with _keeping:
                waiting, _kept = _kept or [], None
            for worker in waiting:
                worker.__exit__(None, None, None)


@contextmanager
def lend_worker(
    folder: Path, *, deadline: Deadline | None = None, is_shared: bool = True, imports: Sequence[str] = ()
) -> Iterator[Worker]:
    """Provides a worker for one compilation: one that waits (`keep_compilers`), or a new one. If there are `imports`,
    its process starts now.

    If `is_shared` is False, it is a new one, which no other compilation gets: its process has the priority of the
    calling thread. A compilation that is refused leaves its process to the next one, like one that succeeds.
    """
    if not is_shared:
        with Worker(folder, deadline=deadline, imports=imports) as worker:
            yield worker
        return
    with _keeping:
        waiting = _kept.pop() if _kept else None
    if waiting is not None and not waiting.serve(folder, deadline):
        waiting.__exit__(None, None, None)
        waiting = None
    worker = waiting or Worker(folder, deadline=deadline, imports=imports)
    try:
        if imports:
            worker.start()
        yield worker
    except TilewrightError:
        _take_back(worker)
        raise
    except BaseException as error:
        # The process may be in the middle of a request.
        worker.__exit__(type(error), error, error.__traceback__)
        raise
    _take_back(worker)


def _take_back(worker: Worker) -> None:
    """Keeps a worker for the next compilation, or ends it if `keep_compilers` is not active."""
    with _keeping:
        is_kept = _kept is not None
        if _kept is not None:
            _kept.append(worker)
    if not is_kept:
        worker.__exit__(None, None, None)


def _directory() -> str | None:
    """Returns the working directory, or None if it has been deleted."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return None


def _read_at_start(environment: dict[str, str]) -> dict[str, str]:
    """Returns the variables that a process reads only when it starts. All others are sent with each request."""
    return {name: value for name, value in environment.items() if name.startswith(("LD_", "PYTHON"))}


def _environment() -> dict[str, str]:
    """Returns a copy of the environment; unlike a plain copy, it tolerates other threads that set and delete
    variables."""
    values = ((name, os.environ.get(name)) for name in list(os.environ))
    return {name: value for name, value in values if value is not None}


class _Limit:
    """Ends a process and everything it started if a block takes longer than its own limit or a deadline."""

    def __init__(self, lifeline: Lifeline, seconds: float | None, deadline: Deadline) -> None:
        self._lifeline = lifeline
        left = deadline.left()
        self.is_deadline = left is not None and (seconds is None or left <= seconds)
        limit = left if self.is_deadline else seconds
        self._timer = threading.Timer(limit, self._end) if limit is not None else None
        self.passed = False

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def cancel(self) -> None:
        """Ends the process as if its deadline had passed."""
        self.is_deadline = True
        self._end()

    def _end(self) -> None:
        self.passed = True
        self._lifeline.kill()


def _how(status: int) -> str:
    return f"died by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
