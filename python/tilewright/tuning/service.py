"""Runs passes whose results are files in a worker process, so that a crash of LLVM does not end the tuning."""

from __future__ import annotations

from typing import Any

from tilewright.errors import PassError
from tilewright.ir.module import Module
from tilewright.iree.text import from_iree as translate
from tilewright.worker.doing import note_passes
from tilewright.worker.process import Worker, WorkerDied


def run_passes(worker: Worker, text: str, pipeline: str, *, from_iree: bool = False) -> None:
    """Runs a pipeline on a module for the files that it writes; raises `PassError`."""
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
        return
    if "pass_error" in reply:
        raise PassError(**reply["pass_error"])
    raise PassError(reply["error"], details=reply["trace"] + log)


def answer(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Handles one request in the worker."""
    note_passes()
    text = blob.decode()
    module = Module.parse(translate(text) if header["from_iree"] else text, name="subprogram.mlir")
    module.run_unrecorded(header["pipeline"])
    return {"ok": True}, b""
