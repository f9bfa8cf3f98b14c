"""Modules of IREE's importers as bytes, and what makes these importers faster."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_TORCH = "iree.compiler.dialects.torch"


@contextlib.contextmanager
def empty_torch_dialect() -> Iterator[None]:
    """Gives MLIR's bindings an empty Python module for the torch dialect inside the `with` block, if IREE has none.

    Without it they look for one again for each op that is made, which takes a third of the import of a large model.
    """
    if _TORCH in sys.modules or find_spec(_TORCH) is not None:
        yield
        return
    sys.modules[_TORCH] = ModuleType(_TORCH)
    try:
        yield
    finally:
        sys.modules.pop(_TORCH, None)


def write_module(module: Any) -> tuple[bytes, str]:
    """Verifies an operation of `iree.compiler.ir`; returns its bytecode, and a listing for people to read.

    Text would lose large constants, because IREE's global flags determine how this process prints.
    """
    module.verify()
    stream = io.BytesIO()
    module.write_bytecode(stream)
    return stream.getvalue(), module.get_asm(large_elements_limit=32, assume_verified=True)
