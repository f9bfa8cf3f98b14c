"""Detection of constant matrices with one number on either side of a diagonal, such as the causal masks of exported
models.

Parameters stay in their files, so the compiler does not see their contents; an attribute tells it about these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.errors import ModelError
from tilewright.runtime.stored import array_of, load_parameters

_TYPES: Mapping[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i1": np.dtype(np.bool_),
}
_GLOBAL = re.compile(
    r'"util\.global"\(\) <\{initial_value = #stream\.parameter\.named<"([^"\\]*)"::"([^"\\]+)"> : '
    r'tensor<(?:1x)*(\d+)x(\d+)x(\w+)>, sym_name = "([^"]+)", sym_visibility = "private", type = [^,}]*\}>'
)


@dataclass(frozen=True)
class Triangles:
    """A matrix whose element [i, j] is `above` if j - i is at least `diagonal`, else `below`."""

    diagonal: int
    below: float
    above: float

    @staticmethod
    def of(matrix: np.ndarray[Any, Any]) -> Triangles | None:
        """Returns the description of a matrix, or None if it has no such form."""
        rows, columns = matrix.shape
        for row in range(rows):
            (others,) = np.nonzero(matrix[row] != matrix[row, 0])
            if others.size == 0:
                continue
            first = int(others[0])
            below, above, diagonal = matrix[row, 0], matrix[row, first], first - row
            # Checking one row first rules out most weights.
            for part in (slice(row, row + 1), slice(rows)):
                distance = np.arange(columns)[None, :] - np.arange(rows)[part, None]
                if not np.array_equal(matrix[part], np.where(distance >= diagonal, above, below)):
                    return None
            return Triangles(diagonal, float(below), float(above))
        return None

    def __str__(self) -> str:
        below, above = (
            f"0x{np.float64(value).view(np.uint64):016X} : f64" for value in (self.below, self.above)
        )
        return f"[{self.diagonal} : i64, {below}, {above}]"


def mark_triangles(text: str, parameters: Mapping[str, Path]) -> str:
    """Returns the module text with an attribute on each load of such a parameter."""
    loaded: dict[str, Mapping[str, Any]] = {}
    for match in _GLOBAL.finditer(text):
        scope, name, rows, columns, element, symbol = match.groups()
        if scope not in parameters or element not in _TYPES or min(int(rows), int(columns)) < 2:
            continue
        try:
            if scope not in loaded:
                loaded[scope] = load_parameters(parameters[scope])
            where = f"{parameters[scope]}, parameter '{name}'"
            matrix = array_of(
                loaded[scope].get(name), (int(rows), int(columns)), _TYPES[element], where=where
            )
        except ModelError:
            continue  # reading the file later reports what is wrong with it
        triangles = Triangles.of(matrix)
        if triangles is not None:
            load = f'"util.global.load"() <{{global = @{symbol}}}>'
            text = text.replace(f"{load} :", f"{load} {{tile.triangles = {triangles}}} :")
    return text
