"""What the generated modules import, with upstream's names."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tilewright import ir
from tilewright.ir.views import register_dialect, register_operation, values_of

_cext = SimpleNamespace(
    ir=ir,
    globals=SimpleNamespace(register_traceback_file_exclusion=lambda _file: None),
    register_dialect=register_dialect,
    register_operation=register_operation,
)


def get_default_loc_context(_location: ir.Location | None = None) -> None:
    """Returns None: attributes are built in the context of the innermost `with` block."""


def get_op_results_or_values(given: Any) -> list[ir.Value]:
    """Returns values, or the results of operations, as a list of values."""
    return values_of(given)


def segmented_accessor(elements: Any, sizes: Any, index: int) -> Any:
    """Returns one group of the operands of an operation."""
    start = sum(sizes.value[:index])
    return elements[start : start + sizes.value[index]]


def equally_sized_accessor(
    elements: Sequence[Any], simple: int, variadic: int, before_simple: int, before_variadic: int
) -> tuple[int, int]:
    """Returns where a group of operands starts, and how many there are in a variadic group; all have the same size."""
    size = (len(elements) - simple) // variadic
    return before_simple + before_variadic * size, size
