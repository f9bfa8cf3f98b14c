"""The process of one peer: answers requests on stdin until it closes (see `benchmarks.client`)."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright.system.idle import wait_until_idle
from tilewright.worker.wire import read_message, write_message

from benchmarks import arrays
from benchmarks.peers import Array, Peer, Program, Settings, UnsupportedError, load_peer

Answer = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves the peer named on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("reference", help="module:class of the peer")
    parser.add_argument("settings", type=json.loads, help="its settings, as JSON")
    options = parser.parse_args(arguments)
    serve(_PeerServer(options.reference, Settings(**options.settings)))


def serve(server: Server) -> None:
    """Answers requests until stdin closes."""
    # Output of libraries must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (message := read_message(sys.stdin.buffer)) is not None:
        write_message(answers, server.answer(message[0]))


class Server:
    """Base of servers. The method `_name` handles the request "name" and returns fields to add to the answer."""

    is_started = False

    def answer(self, request: dict[str, Any]) -> Answer:
        """Returns the answer to a request; an exception becomes an answer, too."""
        name = request.pop("request")
        try:
            answer = {"status": "ok", **getattr(self, f"_{name}")(**request)}
            self.is_started = True
            return answer
        except ImportError as error:
            return {
                "status": "unsupported" if self.is_started else "not installed",
                "reason": _one_line(error),
            }
        except UnsupportedError as error:
            return {"status": "unsupported", "reason": _one_line(error)}
        except Exception as error:
            trace = traceback.format_exc()
            return {"status": "unsupported", "reason": _one_line(error), "trace": trace}


class _PeerServer(Server):
    def __init__(self, reference: str, settings: Settings) -> None:
        self._reference, self._settings = reference, settings
        self._peer: Peer | None = None
        self._inputs: list[Array] = []
        self._programs: dict[int, Program] = {}

    def _start(self) -> Answer:
        self._peer = load_peer(self._reference, self._settings)
        return {"versions": self._peer.versions()}

    def _prepare(self, model: str, inputs: str, repetitions: int, cache: str) -> Answer:
        """Compiles a program and calls it once."""
        assert self._peer is not None
        path = Path(model)
        self._inputs = self._inputs or arrays.load(Path(inputs))
        program = self._peer.prepare(path, self._inputs, repetitions=repetitions, cache=Path(cache))
        program.call()
        self._programs[repetitions] = program
        return {"facts": asdict(program.facts)}

    def _outputs(self, repetitions: int, folder: str) -> Answer:
        program = self._programs[repetitions]
        program.call()
        arrays.save(Path(folder), program.outputs())
        return {}

    def _time(self, calls: dict[str, int]) -> Answer:
        """Returns the seconds of a call for each number of repetitions: the median of the given number of calls
        after a warm-up."""
        seconds = {count: self._burst(int(count), number) for count, number in calls.items()}
        wait_until_idle()  # lets this system's threads sleep before the next system's turn
        return {"seconds": seconds}

    def _burst(self, repetitions: int, calls: int) -> float:
        call = self._programs[repetitions].call
        call()
        seconds = []
        for _ in range(calls):
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
        return statistics.median(seconds)

    def _forget(self) -> Answer:
        """Releases the workload."""
        self._programs.clear()
        self._inputs = []
        return {}


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


if __name__ == "__main__":
    main()
