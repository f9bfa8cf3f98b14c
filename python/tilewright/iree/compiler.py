"""IREE's compiler as the rest of Tilewright sees it: its input is text, its output is text or a VM module."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tilewright.errors import IreeError
from tilewright.iree.static_onnx import keeps_lowering
from tilewright.iree.versions import check_iree
from tilewright.records.signature import Signature, signature_from_types
from tilewright.worker.process import Worker, WorkerDied, WorkerTooSlow

Phase = Literal["input", "abi", "preprocessing", "global-optimization", "flow", "stream", "hal", "vm"]
"""Phases of IREE's pipeline at which Tilewright stops or resumes."""


@dataclass(frozen=True)
class Diagnostic:
    """A message of IREE's compiler."""

    severity: str
    message: str
    location: str | None = None
    operation: str | None = None


class IreeCompiler:
    """IREE's compiler in a worker process."""

    def __init__(self, worker: Worker, *, process_flags: Sequence[str] = ()) -> None:
        """`process_flags` are for a worker that has compiled nothing yet, and that nothing else will use."""
        check_iree("iree-base-compiler")
        self._worker = worker
        self._process_flags = list(process_flags)

    def compile_to(
        self,
        source: bytes,
        phase: Phase,
        *,
        flags: Sequence[str],
        name: str = "model",
        is_static_onnx: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> str:
        """Compiles a module (text or bytecode) up to a phase; returns generic, local-scope text.

        `is_static_onnx` says that the module is ONNX whose types have all sizes, which is faster (see `static_onnx`).
        `meanwhile` is called while the compiler works.
        """
        return self._compile(
            source,
            start=None,
            stop=phase,
            flags=flags,
            name=name,
            is_static_onnx=is_static_onnx,
            meanwhile=meanwhile,
        ).decode()

    def resume(
        self,
        source: bytes,
        start: Phase,
        *,
        flags: Sequence[str],
        name: str = "model",
        stop: Phase | None = None,
    ) -> bytes:
        """Resumes after a phase; returns the text at another phase or, without `stop`, a VM module."""
        return self._compile(source, start=start, stop=stop, flags=flags, name=name)

    def compile(self, source: bytes, *, flags: Sequence[str], name: str = "model") -> bytes:
        """Compiles a module all the way to a VM module."""
        return self._compile(source, start=None, stop=None, flags=flags, name=name)

    def signature(self, source: bytes, function: str | None) -> Signature | None:
        """Returns the signature of a public function of a module, or of its only one; None if it cannot be read."""
        types = self._function(source, function)
        return signature_from_types(types["inputs"], types["outputs"]) if types else None

    def names(self, source: bytes, function: str | None) -> tuple[list[str], list[str]]:
        """Returns the names of a public function's arguments and results, "" where JAX wrote none."""
        found = self._function(source, function)
        return (found["input_names"], found["output_names"]) if found else ([], [])

    def _function(self, source: bytes, function: str | None) -> dict[str, list[str]] | None:
        functions = self.functions(source)
        return functions.get(
            next(iter(functions)) if function is None and len(functions) == 1 else str(function)
        )

    def functions(self, source: bytes) -> dict[str, dict[str, list[str]]]:
        """Returns the public functions of a module by name, with the types and names of their "inputs" and "outputs";
        none if it cannot be read."""
        answer, _, _ = self.ask(
            {
                "request": "tilewright.iree.service:list_functions",
                "step": "the reading of the module's functions",
            },
            source,
        )
        return answer.get("functions", {})  # type: ignore[no-any-return]

    def _compile(
        self,
        source: bytes,
        *,
        start: Phase | None,
        stop: Phase | None,
        flags: Sequence[str],
        name: str,
        is_static_onnx: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> bytes:
        header = {
            "request": "tilewright.iree.service:compile_between_phases",
            "step": "IREE's compiler",
            "flags": list(flags),
            "process_flags": self._process_flags,
            "name": name,
            "from": start,
            "to": stop,
            "is_static_onnx": is_static_onnx and keeps_lowering(flags),
            # The parser that reads the module at that phase verifies it; a verifier after every pass takes two fifths
            # of the time of 24 layers of BERT (Zen 3, 2026-11-29).
            "verifies": stop != "preprocessing",
        }
        try:
            answer, result, log = self._worker.ask(header, source, meanwhile=meanwhile)
        except WorkerDied as death:
            if header["verifies"] or isinstance(death, WorkerTooSlow):
                raise _died(death) from None
            # The whole pipeline may survive what the short one did not, or its verifier says what is wrong.
            answer, result, log = self.ask({**header, "is_static_onnx": False, "verifies": True}, source)
        if answer["ok"]:
            return result
        if "error" in answer:
            # Flags and buffers are refused by an exception, everything else by diagnostics.
            message = _one_line(answer["error"])
            raise IreeError(f"IREE: {message}", details=answer.get("trace", "") + log)
        raise _error_from(answer["diagnostics"], log)

    def ask(
        self, header: dict[str, Any], blob: bytes, *, meanwhile: Callable[[], None] | None = None
    ) -> tuple[dict[str, Any], bytes, str]:
        """Sends a request to the worker, like `Worker.ask`; raises `IreeError` if the worker dies."""
        try:
            return self._worker.ask(header, blob, meanwhile=meanwhile)
        except WorkerDied as death:
            raise _died(death) from None


# The position is "file.mlir:3:7: message", or loc("name" at ...) for a named location.
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
    # For messages like "failed to serialize executables", the reason is only printed.
    if log and re.search(r"failed to (serialize|link)|failed to run translation", message):
        message = f"{message} ({_first_complaint(log)})"
    return IreeError(f"IREE: {message}", operation=first.operation, location=first.location, details=details)


def _parse(raw: dict[str, str]) -> Diagnostic:
    text = raw["message"]
    # The text behind this is a dump of the op, at worst of the whole module.
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
    """Returns the error for a request that ended with an exception."""
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
