"""A worker that is busy in native code, with or without Python's lock, or starts a program."""

from __future__ import annotations

import ctypes
import subprocess
from typing import Any

from tilewright.ir.module import Module
from tilewright.worker import serving as worker

_SECONDS = 300


def hold_lock(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    ctypes.PyDLL(None).sleep(_SECONDS)
    return {"ok": True}, b""


def release_lock(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    ctypes.CDLL(None).sleep(_SECONDS)
    return {"ok": True}, b""


def start_program(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Starts a program as IREE starts its linker."""
    subprocess.run(["sleep", str(_SECONDS)], check=True)
    return {"ok": True}, b""


def run_passes(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    while True:
        Module.parse(blob.decode()).run_unrecorded("builtin.module(canonicalize)")


def answer(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    return {"ok": True}, b""


if __name__ == "__main__":
    worker.main("lifeline_victim")
