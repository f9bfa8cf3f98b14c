"""Calls from a worker back to the process that it works for, in the middle of a request.

The worker writes a message whose header has "call"; the other side answers it with a message and goes on waiting for
the answer to its request (`Worker.ask`). Passes of the user run like this: in the user's process, on a module of the
worker.
"""

from __future__ import annotations

from typing import IO, Any

from tilewright.worker.wire import read_message, write_message

_streams: tuple[IO[bytes], IO[bytes]] | None = None


def connect(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Sets the streams on which this process, a worker, talks to its caller."""
    global _streams
    _streams = (requests, answers)


def call(header: dict[str, Any], blob: bytes = b"") -> tuple[dict[str, Any], bytes]:
    """Sends a call to the process that waits for this worker; returns what it answers.

    Raises `RuntimeError` outside workers, and if that process is gone.
    """
    if _streams is None:
        raise RuntimeError("only a worker has a caller")
    requests, answers = _streams
    write_message(answers, {"call": True, **header}, blob)
    answer = read_message(requests)
    if answer is None:
        raise RuntimeError("the caller is gone")
    return answer
