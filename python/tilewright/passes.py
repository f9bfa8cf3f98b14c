"""Every pass of Tilewright as a function over a `Module`, with typed options: see `help(tilewright.passes)`.

    from tilewright import Module, passes

    module = Module.parse(text)
    passes.raise_tensor_exprs(module)
    remarks = passes.compose_exprs(module)

The functions are generated from `passes/Passes.td` when the extension module is built.
"""

from __future__ import annotations

from tilewright._passes_generated import *
from tilewright._passes_generated import __all__ as __all__
