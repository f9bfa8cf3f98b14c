"""IREE's compiler as seen from the rest of Tilewright: text in, text or a VM module out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tilewright.errors import IreeError
from tilewright.iree.versions import check_iree
from tilewright.records.signature import Signature, signature_from_types
from tilewright.worker.process import Worker, WorkerDied

Phase = Literal["input", "abi", "preprocessing", "global-optimization", "flow", "stream", "hal", "vm"]
"""The phases of IREE's pipeline that Tilewright stops or resumes at."""


@dataclass(frozen=True)
class Diagnostic:
    """One message of a compiler."""

    severity: str
    message: str
    location: str | None = None
    operation: str | None = None


class IreeCompiler:
    """IREE's compiler in a worker process."""

    def __init__(self, worker: Worker) -> None:
        check_iree("iree-base-compiler")
        self._worker = worker

    def compile_to(self, source: bytes, phase: Phase, *, flags: Sequence[str], name: str = "model") -> str:
        """Compiles a module (text or bytecode) up to a phase; gives generic, local-scope text."""
        return self._compile(source, start=None, stop=phase, flags=flags, name=name).decode()

    def resume(
        self,
        source: bytes,
        start: Phase,
        *,
        flags: Sequence[str],
        name: str = "model",
        stop: Phase | None = None,
    ) -> bytes:
        """Compiles on from a phase, to another phase (text) or to a VM module."""
        return self._compile(source, start=start, stop=stop, flags=flags, name=name)

    def compile(self, source: bytes, *, flags: Sequence[str], name: str = "model") -> bytes:
        """Compiles a module all the way to a VM module."""
        return self._compile(source, start=None, stop=None, flags=flags, name=name)

    def signature(self, source: bytes, function: str) -> Signature | None:
        """The signature of a public function of a module; None if there is none to read."""
        answer, _, _ = self.ask(
            {
                "request": "tilewright.iree.service:list_functions",
                "step": "the reading of the module's functions",
            },
            source,
        )
        types = answer.get("functions", {}).get(function)
        return signature_from_types(types["inputs"], types["outputs"]) if types else None

    def _compile(
        self, source: bytes, *, start: Phase | None, stop: Phase | None, flags: Sequence[str], name: str
    ) -> bytes:
        header = {
            "request": "tilewright.iree.service:compile_between_phases",
            "step": "IREE's compiler",
            "flags": list(flags),
            "name": name,
            "from": start,
            "to": stop,
        }
        answer, result, log = self.ask(header, source)
        if answer["ok"]:
            return result
        if "error" in answer:
            # Flags and buffers are refused by exception, everything else by diagnostics.
            message = _one_line(answer["error"])
            raise IreeError(f"IREE: {message}", details=answer.get("trace", "") + log)
        raise _error_from(answer["diagnostics"], log)

    def ask(self, header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes, str]:
        """Sends a request to the worker, like `Worker.ask`; where it dies, that is an `IreeError`."""
        try:
            return self._worker.ask(header, blob)
        except WorkerDied as death:
            raise _died(death) from None


# "file.mlir:3:7: message", or the loc("name" at ...) forms of named locations.
_POSITION = re.compile(
    r'^(?P<where>loc\(.*?\)|"[^"]*"(?:\([^)]*\))?|[^\s:"]+:\d+:\d+): (?P<text>.*)', re.DOTALL
)
_OPERATION = re.compile(r"'(?P<op>[a-z_]+\.[\w.$]+)' op|failed to legalize operation '(?P<illegal>[^']+)'")


def _error_from(diagnostics: Sequence[dict[str, str]], log: str) -> IreeError:
    errors = [d for d in diagnostics if d["severity"] == "error"] or list(diagnostics)
    details = "\n".join(d["message"] for d in diagnostics) + "\n" + log
    if not errors:
        return IreeError(f"IREE: {_first_complaint(log)}", details=details)
    first = _parse(errors[0])
    message = first.message
    # "failed to serialize executables" and the like: the reason was only printed.
    if log and re.search(r"failed to (serialize|link)|failed to run translation", message):
        message = f"{message} ({_first_complaint(log)})"
    return IreeError(f"IREE: {message}", operation=first.operation, location=first.location, details=details)


def _parse(raw: dict[str, str]) -> Diagnostic:
    text = raw["message"]
    # What follows is a dump of the op, of the whole module at worst.
    text = re.split(r"\n\n?(?:[^\n]*: )?see current operation", text)[0]
    match = _POSITION.match(text)
    location = match["where"] if match else None
    text = match["text"] if match else text
    named = _OPERATION.search(text)
    operation = (named["op"] or named["illegal"]) if named else None
    return Diagnostic(raw["severity"], _one_line(text), location, operation)


def _first_complaint(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for line in lines:
        if re.search(r"\berror\b", line, re.IGNORECASE):
            return line[:300]
    return lines[0][:300] if lines else "no reason given"


def request_failed(answer: dict[str, Any]) -> IreeError:
    """The error for a request that an exception ended."""
    return IreeError(_one_line(answer["error"]), details=answer.get("trace", ""))


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines)[:500]


def _died(death: WorkerDied) -> IreeError:
    reason = re.search(r"^LLVM ERROR: .*", death.log, re.MULTILINE)
    said = f": {reason[0]}" if reason else ""
    return IreeError(
        f"IREE's compiler {death.how} on this model{said}",
        hint="an op, type or nesting that IREE does not support is the usual cause",
        details=death.log,
    )
