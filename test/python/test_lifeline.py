"""Started processes end with the process that started them, however it ends and whatever they are doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tilewright.system.lifeline import Lifeline, run
from tilewright.worker.process import Worker

_WAIT_SECONDS = 60.0
"""Seconds, far more than anything here takes: a wait that lasts so long has failed."""

_WORKER = """
import sys, threading
from pathlib import Path
from tilewright.worker.process import Worker

worker = Worker(Path(sys.argv[1]), module="lifeline_victim")
worker.ask({"request": "lifeline_victim:answer"})
print("asked", flush=True)
"""
_ASK = 'worker.ask({"request": "lifeline_victim:" + sys.argv[2]}, b"module {}")\n'
_IDLE = "threading.Event().wait()\n"
_IN_THREAD = """
def start():
    global worker
    worker = Worker(Path(sys.argv[1]), module="lifeline_victim")
    worker.ask({"request": "lifeline_victim:answer"})

thread = threading.Thread(target=start)
thread.start()
thread.join()
worker.ask({"request": "lifeline_victim:answer"})  # The thread that started it has ended, and it lives on.
print("asked", flush=True)
threading.Event().wait()
"""
_POOL = """
import multiprocessing, sys, threading, time
from tilewright.system.lifeline import end_with_parent

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[2]).Pool(2, initializer=end_with_parent) as pool:
        pool.map(abs, range(8))
        print("asked", flush=True)
        pool.map(time.sleep, [300.0] * 2)
"""


@contextmanager
def _caller(tmp_path: Path, code: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs code in a process until it prints that it has sent a request. All its descendants inherit its variable."""
    script = tmp_path / "caller.py"
    script.write_text(code)
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parent), *sys.path]))
    environment = {**os.environ, "PYTHONPATH": paths, "CALLER": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), *arguments], stdout=subprocess.PIPE, env=environment
    )
    with process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"asked\n"
            yield process
        finally:
            process.kill()
            for pid in _family(tmp_path):
                os.kill(pid, signal.SIGKILL)


def _family(tmp_path: Path) -> list[int]:
    """Returns the living processes of a caller's family, itself included."""
    mark, found = f"CALLER={tmp_path}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            state = (folder / "stat").read_text().rpartition(") ")[2][0]
        except OSError:
            continue  # it has just ended
        if state not in "ZX":
            found.append(int(folder.name))
    return found


def _until(condition: str, tmp_path: Path, *, count: int) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while len(_family(tmp_path)) != count:
        assert time.monotonic() < deadline, f"{condition}: {_family(tmp_path)}"
        time.sleep(0.02)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_an_idle_worker_ends_with_its_caller(tmp_path: Path, ending: signal.Signals) -> None:
    with _caller(tmp_path, _WORKER + _IDLE) as caller:
        assert len(_family(tmp_path)) == 2
        caller.send_signal(ending)
        _until("a worker outlives its caller", tmp_path, count=0)


@pytest.mark.parametrize("request_", ["hold_lock", "release_lock", "run_passes"])
def test_a_busy_worker_ends_with_its_caller(tmp_path: Path, request_: str) -> None:
    with _caller(tmp_path, _WORKER + _ASK, request_) as caller:
        time.sleep(0.5)  # by now it is most likely handling the request
        assert len(_family(tmp_path)) == 2
        caller.kill()
        _until("a worker outlives its caller", tmp_path, count=0)


def test_what_a_worker_started_ends_with_the_caller(tmp_path: Path) -> None:
    with _caller(tmp_path, _WORKER + _ASK, "start_program") as caller:
        _until("the worker starts no program", tmp_path, count=3)
        caller.kill()
        _until("a program outlives the worker's caller", tmp_path, count=0)


def test_what_a_worker_started_ends_with_the_worker(tmp_path: Path) -> None:
    with _caller(tmp_path, _WORKER + _ASK, "start_program") as caller:
        _until("the worker starts no program", tmp_path, count=3)
        worker = next(pid for pid in _family(tmp_path) if _parent(pid) == caller.pid)
        os.kill(worker, signal.SIGKILL)
        _until("a program outlives the worker", tmp_path, count=0)


def test_a_worker_outlives_the_thread_that_started_it_but_not_the_process(tmp_path: Path) -> None:
    with _caller(tmp_path, _WORKER + _IN_THREAD) as caller:
        caller.kill()
        _until("a worker outlives its caller", tmp_path, count=0)


def test_a_worker_of_a_worker_ends_with_the_outermost_caller(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, threading\n"
        "from tilewright.system.lifeline import Lifeline\n"
        f"command = [sys.executable, '-c', {_WORKER + _ASK!r}, *sys.argv[1:]]\n"
        "process = Lifeline().start(command)\n"
    )
    # The lifeline must be held for as long as the process is needed.
    code = code.replace("process = Lifeline()", "lifeline = Lifeline()\nprocess = lifeline") + _IDLE
    with _caller(tmp_path, code, "hold_lock") as caller:
        time.sleep(0.5)
        assert len(_family(tmp_path)) == 3
        caller.kill()
        _until("a worker outlives its caller's caller", tmp_path, count=0)


def test_a_fork_of_the_caller_does_not_keep_the_worker(tmp_path: Path) -> None:
    code = "import os, time\nif os.fork() == 0:\n    time.sleep(300)\n"
    with _caller(tmp_path, _WORKER + code + _IDLE) as caller:
        _until("there is no fork", tmp_path, count=3)
        caller.kill()
        _until("the worker lives on with the fork", tmp_path, count=1)


def test_a_fork_has_compilers_of_its_own(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from tilewright.worker.process import keep_compilers, lend_worker\n"
        "def ask():\n"
        "    with lend_worker(Path(sys.argv[1])) as worker:\n"
        "        worker.ask({'request': 'tilewright.iree.service:list_functions'}, b'module {}')\n"
        "        return worker._process.pid\n"
        "with keep_compilers():\n"
        "    first = ask()\n"
        "    if os.fork() == 0:\n"
        "        os._exit(10 * (ask() != first))\n"
        "    status = os.waitstatus_to_exitcode(os.wait()[1])\n"
        "    sys.exit(status + (ask() == first))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(command, env=environment, check=False).returncode == 11


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_processes_of_a_pool_end_with_its_owner(tmp_path: Path, how: str) -> None:
    with _caller(tmp_path, _POOL, how) as caller:
        time.sleep(0.5)
        caller.kill()
        _until("a pool outlives its owner", tmp_path, count=0)


def test_a_program_that_knows_of_nothing_ends_with_its_starter(tmp_path: Path) -> None:
    code = "from tilewright.system.lifeline import run\nprint('asked', flush=True)\nrun(['sleep', '300'])\n"
    with _caller(tmp_path, code) as caller:
        _until("there is no program", tmp_path, count=2)
        time.sleep(0.5)  # the request for a death signal follows right after the start
        caller.kill()
        _until("a program outlives its starter", tmp_path, count=0)


def test_a_program_is_ended_at_its_limit() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(["sleep", "300"], timeout=0.1)


def test_what_a_program_says_is_captured() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_a_lifeline_that_goes_takes_its_process_along() -> None:
    lifeline = Lifeline()
    process = lifeline.start(["sleep", "300"])
    del lifeline
    assert process.wait(timeout=_WAIT_SECONDS) == -signal.SIGKILL


def test_a_worker_that_ends_by_itself_says_how(tmp_path: Path) -> None:
    with Worker(tmp_path) as worker:
        worker.ask({"request": "tilewright.iree.service:list_functions"}, b"module {}")
        process = worker._process
        assert process is not None
    assert process.returncode == 0


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
