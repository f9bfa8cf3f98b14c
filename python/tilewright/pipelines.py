"""Textual pass pipelines.

module.run(pipeline("canonicalize", nested("func.func", "tile-raise", "tile-compose")))
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tilewright.ir.module import Diagnostic, Module

OptionValue: TypeAlias = "str | int | float | bool | Sequence[str] | Sequence[int] | Sequence[float] | None"


def pass_text(argument: str, options: Mapping[str, OptionValue] | None = None) -> str:
    """Returns one pass with its options: `tile-splice-iree{object=kernels.o}`; None and "" mean the default."""
    written = [f"{name}={_value(value)}" for name, value in (options or {}).items() if not _is_default(value)]
    return f"{argument}{{{' '.join(written)}}}" if written else argument


def nested(operation: str, *passes: str) -> str:
    """Returns text that runs passes on every operation of a name, one level down."""
    return f"{operation}({','.join(passes)})"


def pipeline(*passes: str, operation: str = "builtin.module") -> str:
    """Returns a whole pipeline, anchored on the operation that it runs on."""
    return nested(operation, *passes)


def run_pass(
    module: Module,
    argument: str,
    *,
    anchor: str = "builtin.module",
    options: Mapping[str, OptionValue] | None = None,
) -> list[Diagnostic]:
    """Runs one pass on every operation that it is anchored on; returns its remarks."""
    return module.run(pipeline(pass_text(argument, options), operation=anchor))


def _is_default(value: OptionValue) -> bool:
    return value is None or (not isinstance(value, bool | int | float) and len(value) == 0)


def _value(value: OptionValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    assert value is not None
    # A list is quoted as a whole, because MLIR splits it after it has removed the quotes.
    text = value if isinstance(value, str) else ",".join(str(item) for item in value)
    # Quotes keep spaces and braces of a path together.
    return text if re.fullmatch(r"[\w,.-]*", text) else f"'{text}'"
