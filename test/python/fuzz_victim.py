"""A worker that hangs or crashes on request."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from tilewright.worker import serving as worker


def hang(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    time.sleep(60)
    return {}, b""


def crash(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}, b""


def live(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    return {"ok": True}, b""


if __name__ == "__main__":
    worker.main("fuzz_victim")
