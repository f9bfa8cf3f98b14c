"""Calls with fewer rows than a program is for: its inputs are filled up, and its outputs cut.

That is right only where every row is computed by itself, which `iree.rows` proves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tilewright.runtime.program import Program

WHOLE = -1
"""Axis of an input or output that has no rows."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Where the rows of a program for some sizes are, and how many of them a call for fewer has."""

    inputs: tuple[int, ...]
    """Axis of each input, or `WHOLE`."""
    outputs: tuple[tuple[int, int], ...]
    """Axis of each output and its number of rows, or `WHOLE` twice."""


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A program for more rows than a call has."""

    sizes: Mapping[str, int]
    """The sizes that it is for."""
    rows: Rows
    program: Program = field(repr=False)

    def filled(self, values: Sequence[Any]) -> list[Any]:
        """Returns arrays or tensors as large as the program's inputs. What is added repeats the last row, so that it is
        as valid as that: an index, for instance, stays in range."""
        signature = self.program.signature
        assert signature is not None
        return [
            value if axis == WHOLE else _fill(value, axis, spec.shape[axis])
            # Inputs with defaults may be missing.
            for value, axis, spec in zip(values, self.rows.inputs, signature.inputs, strict=False)
        ]

    def cut(self, results: Sequence[Any]) -> list[Any]:
        """Returns the rows of the outputs that belong to the call, as contiguous arrays or tensors."""
        return [
            result if axis == WHOLE else _first(result, axis, count)
            for result, (axis, count) in zip(results, self.rows.outputs, strict=True)
        ]


def _fill(value: Any, axis: int, size: Any) -> Any:
    missing = size - value.shape[axis]
    parts = [value, *[_part(value, axis, slice(value.shape[axis] - 1, None))] * missing]
    if isinstance(value, np.ndarray):
        return np.concatenate(parts, axis=axis)
    if type(value).__module__.startswith("torch"):
        import torch

        return torch.cat(parts, dim=axis)
    import jax

    return jax.numpy.concatenate(parts, axis=axis)


def _first(result: Any, axis: int, count: int) -> Any:
    part = _part(result, axis, slice(0, count))
    return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part.contiguous()


def _part(value: Any, axis: int, rows: slice) -> Any:
    return value[(*[slice(None)] * axis, rows)]
