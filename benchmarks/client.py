"""The client of a peer's process, with time limits on requests and failures that say what happened (see `child`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from tilewright.system.lifeline import Lifeline
from tilewright.worker.wire import read_message, write_message

from benchmarks.child import Answer
from benchmarks.peers import Settings

ROOT = Path(__file__).resolve().parent.parent


class PeerError(Exception):
    """A request failed; `status` is one of a row's statuses."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Client:
    """A process with one peer, started at the first request and restarted at the next request after it dies."""

    def __init__(
        self, reference: str, settings: Settings, *, log: Path, server: str = "benchmarks.child"
    ) -> None:
        self._reference, self._settings, self._log, self._server = reference, settings, log, server
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: Lifeline | None = None
        self.versions: dict[str, str] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ask(self, request: str, *, limit: float, **arguments: Any) -> Answer:
        """Sends a request and returns its answer; raises `PeerError` if that takes more than `limit` seconds."""
        if self._process is None:
            self._launch()
            self.versions = self._exchange({"request": "start"}, limit)["versions"]
        return self._exchange({"request": request, **arguments}, limit)

    def stop(self) -> None:
        """Ends the process and its descendants."""
        process, self._process = self._process, None
        if process is None or self._lifeline is None:
            return
        self._lifeline.end()
        assert process.stdin is not None and process.stdout is not None
        process.stdout.close()
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass  # nobody reads its last output any more

    def _launch(self) -> None:
        command = [sys.executable, "-m", self._server, self._reference]
        paths = [str(ROOT), *filter(None, sys.path)]  # it imports what this process would
        with self._log.open("ab") as log:
            self._lifeline = Lifeline()
            self._process = self._lifeline.start(
                [*command, json.dumps(asdict(self._settings))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )

    def _exchange(self, request: dict[str, Any], limit: float) -> Answer:
        process, lifeline = self._process, self._lifeline
        assert process is not None and process.stdin is not None and process.stdout is not None
        assert lifeline is not None
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            lifeline.kill()

        watch = threading.Timer(limit, expire)
        watch.start()
        try:
            write_message(process.stdin, request)
            message = read_message(process.stdout)
        except BrokenPipeError:
            message = None
        finally:
            watch.cancel()
        if message is None:
            returned = process.wait()
            self.stop()
            if expired.is_set():
                raise PeerError("timed out", f"no answer to '{request['request']}' within {limit:g} s")
            raise PeerError("crashed", f"{_how(returned)} in '{request['request']}'")
        answer = message[0]
        if answer["status"] != "ok":
            if request["request"] == "start":
                self.stop()
            raise PeerError(answer["status"], answer["reason"])
        return answer


def _how(returned: int) -> str:
    return f"killed by {signal.Signals(-returned).name}" if returned < 0 else f"exit status {returned}"
