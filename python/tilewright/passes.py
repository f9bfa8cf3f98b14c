"""Functions that run a single pass of Tilewright on a `Module`, with typed options: see `help(tilewright.passes)`.

    from tilewright import Module, passes

    module = Module.parse(text)
    passes.raise_tensor_exprs(module)
    remarks = passes.compose_exprs(module)

The functions are generated from `passes/Passes.td` when the extension module is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright._passes_generated import *
from tilewright._passes_generated import __all__ as __all__

if TYPE_CHECKING:
    from tilewright.ir.module import Diagnostic

    # This declaration serves to type-check the source alone, where the generated module does not exist yet.
    def __getattr__(name: str) -> Callable[..., list[Diagnostic]]: ...
