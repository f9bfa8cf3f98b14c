"""Runs passes whose results are files in a worker process, so that a crash of LLVM does not end the tuning."""

from __future__ import annotations

import re
from typing import Any

from tilewright.errors import PassError
from tilewright.ir.module import Module
from tilewright.iree.text import from_iree as translate
from tilewright.worker.doing import note_passes
from tilewright.worker.process import Worker, WorkerDied

Launch = dict[str, Any]
"""A kernel's name ("kernel"), its bindings, inputs first ("bindings"), and which of them are weights ("weights")."""


def run_passes(worker: Worker, text: str, pipeline: str, *, from_iree: bool = False) -> list[Launch]:
    """Runs a pipeline on a module and returns the launches in the result; raises `PassError`."""
    header = {
        "request": f"{__name__}:answer",
        "step": "planning and compiling kernels for timing",
        "pipeline": pipeline,
        "from_iree": from_iree,
    }
    try:
        reply, _, log = worker.ask(header, text.encode())
    except WorkerDied as death:
        raise PassError(f"the compiler's process {death.how}", details=death.log) from None
    if reply["ok"]:
        return list(reply["launches"])
    if "pass_error" in reply:
        raise PassError(**reply["pass_error"])
    raise PassError(reply["error"], details=reply["trace"] + log)


def answer(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Handles one request in the worker."""
    note_passes()
    text = blob.decode()
    module = Module.parse(translate(text) if header["from_iree"] else text, name="subprogram.mlir")
    module.run_unrecorded(header["pipeline"])
    return {"ok": True, "launches": launches(module)}, b""


_RESULTS = re.compile(r"^\s*(%[\w.$-]+)(?::(\d+))? = ")
_WEIGHT = re.compile(r"(%[\w.$-]+): tensor<[^>]*> \{tilewright\.weight\}")
_OPERANDS = re.compile(r"%[\w.$-]+(?:#\d+)?")


def launches(module: Module) -> list[Launch]:
    """Returns the launches of a lowered function in order. The ops between them are views, which share their
    sources."""
    source: dict[str, str] = {}
    found: list[Launch] = []
    weights: set[str] = set()
    for operation in module.operation.walk():
        text = operation.print(skip_regions=True)
        results = _results(text)
        operands = [
            source.get(name, name) for name in _OPERANDS.findall(_after_results(text).split(" : ")[0])
        ]
        if operation.name == "func.func":
            weights |= set(_WEIGHT.findall(text))
        elif operation.name == "tile.launch":
            match = re.search(r'@"?([\w.$-]+)"?\(', text)
            assert match is not None
            bindings = [*operands, *results]
            found.append(
                {"kernel": match[1], "bindings": bindings, "weights": [b for b in bindings if b in weights]}
            )
        elif operands:
            source |= dict.fromkeys(results, operands[0])
    return found


def _results(text: str) -> list[str]:
    match = _RESULTS.match(text)
    if match is None:
        return []
    return [match[1]] if match[2] is None else [f"{match[1]}#{i}" for i in range(int(match[2]))]


def _after_results(text: str) -> str:
    match = _RESULTS.match(text)
    return text[match.end() :] if match else text
