"""What a worker is doing, for its caller to read, also after the worker was killed in the middle of it.

It is in a small file that both have open: a record for the step, which the caller writes with each request and the
worker as it goes on, and one for the pass of ours that is running, which the pass manager writes (`note_passes_in` of
the extension module).
"""

from __future__ import annotations

import os

STEP_OFFSET, PASS_OFFSET = 0, 512
"""Where the records begin, in bytes."""
_RECORD_BYTES = 512

_file: int | None = None


def note_in(file: int) -> None:
    """Has this process, a worker, write what it does to an open file."""
    global _file
    _file = file


def doing(step: str) -> None:
    """Notes a step of a request: "IREE's phase 'flow'"; does nothing in other processes than workers."""
    if _file is not None:
        write_doing(_file, step)


def write_doing(file: int, step: str) -> None:
    """Notes a step, and that no pass of it has begun."""
    _write(file, PASS_OFFSET, "")
    _write(file, STEP_OFFSET, step)


def note_passes() -> None:
    """Has the extension module note its passes, too, in a worker."""
    from tilewright.ir.native import native

    if _file is not None:
        native.note_passes_in(_file, PASS_OFFSET, _RECORD_BYTES)


def read_doing(file: int) -> str:
    """What was begun last: the pass, else the step."""
    return _read(file, PASS_OFFSET) or _read(file, STEP_OFFSET)


def _write(file: int, offset: int, text: str) -> None:
    encoded = " ".join(text.split()).encode(errors="replace")[: _RECORD_BYTES - 1]
    os.pwrite(file, encoded.ljust(_RECORD_BYTES, b"\0"), offset)


def _read(file: int, offset: int) -> str:
    return os.pread(file, _RECORD_BYTES, offset).partition(b"\0")[0].decode(errors="replace")
