"""Record of a worker's current step, which its caller can read even after the worker was killed.

It is a small file that both have open. One record holds the step, which the caller writes with each request and the
worker updates; the other holds the running pass of Tilewright, which the pass manager writes (`note_passes_in` of the
extension module).
"""

from __future__ import annotations

import os

STEP_OFFSET, PASS_OFFSET = 0, 512
"""Positions of the records, in bytes."""
_RECORD_BYTES = 512

_file: int | None = None


def note_in(file: int) -> None:
    """Sets the open file to which this process, a worker, writes its current step."""
    global _file
    _file = file


def doing(step: str) -> None:
    """Records a step of a request, such as "IREE's phase 'flow'"; does nothing outside workers."""
    if _file is not None:
        write_doing(_file, step)


def write_doing(file: int, step: str) -> None:
    """Records a step, and that none of its passes has begun."""
    _write(file, PASS_OFFSET, "")
    _write(file, STEP_OFFSET, step)


def note_passes() -> None:
    """Makes the extension module record its passes as well, in a worker."""
    from tilewright.ir.native import native

    if _file is not None:
        native.note_passes_in(_file, PASS_OFFSET, _RECORD_BYTES)


def read_doing(file: int) -> str:
    """Returns what began last: the pass, else the step."""
    return _read(file, PASS_OFFSET) or _read(file, STEP_OFFSET)


def _write(file: int, offset: int, text: str) -> None:
    encoded = " ".join(text.split()).encode(errors="replace")[: _RECORD_BYTES - 1]
    os.pwrite(file, encoded.ljust(_RECORD_BYTES, b"\0"), offset)


def _read(file: int, offset: int) -> str:
    return os.pread(file, _RECORD_BYTES, offset).partition(b"\0")[0].decode(errors="replace")
