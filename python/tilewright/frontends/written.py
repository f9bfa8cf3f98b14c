"""Modules of IREE's importers as bytes. Only the compiler's process can import this."""

from __future__ import annotations

import io
import sys
from types import ModuleType
from typing import Any

_TORCH = "iree.compiler.dialects.torch"


def declare_torch_dialect() -> None:
    """Gives MLIR's bindings an empty Python module for the torch dialect, of which IREE has none.

    Without it they look for one again for each op that is made, which takes a third of the import of a large model.
    """
    sys.modules.setdefault(_TORCH, ModuleType(_TORCH))


def write_module(module: Any) -> tuple[bytes, str]:
    """Verifies an operation of `iree.compiler.ir`; returns its bytecode, and a listing for people to read.

    Text would lose large constants, because IREE's global flags determine how this process prints.
    """
    module.verify()
    stream = io.BytesIO()
    module.write_bytecode(stream)
    return stream.getvalue(), module.get_asm(large_elements_limit=32, assume_verified=True)
