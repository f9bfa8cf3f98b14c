"""Modules of IREE's importers as bytes. Only the compiler's process can import this."""

from __future__ import annotations

import io
from typing import Any


def write_module(module: Any) -> tuple[bytes, str]:
    """Verifies an operation of `iree.compiler.ir`; returns its bytecode, and a listing for people to read.

    Text would lose large constants, because IREE's global flags determine how this process prints.
    """
    module.verify()
    stream = io.BytesIO()
    module.write_bytecode(stream)
    return stream.getvalue(), module.get_asm(large_elements_limit=32, assume_verified=True)
