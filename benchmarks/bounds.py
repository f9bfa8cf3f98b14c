"""Says which resource of the machine bounds a row: the multiply-adds, or a level of the memory.

Each resource needs at least some time for what a program does: the multiply-adds for the operations of contractions,
the innermost cache for all bytes that kernels load and store, and the innermost level that holds all inputs, weights
and outputs for reading or writing each of them once. The resource that needs the longest time bounds the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.rows import Row

MULTIPLY_ADDS = "FMA"


@dataclass(frozen=True)
class Bound:
    """The resource that a program cannot be faster than."""

    resource: str
    """`MULTIPLY_ADDS`, or the name of a level of the memory."""
    seconds: float
    """Least seconds that it needs."""


def bound_of(row: Row, limits: Mapping[str, Any]) -> Bound:
    """Returns what bounds a row. `limits` are those of `machine.limits`."""
    levels: Sequence[Mapping[str, Any]] = limits["levels"]
    home = next((level for level in levels if level["bytes"] >= row.compulsory_bytes), levels[-1])
    bounds = [Bound(home["name"], row.compulsory_bytes / (home["read_gb_per_s"] * 1e9))]
    if row.bytes_moved is not None:
        bounds.append(Bound(levels[0]["name"], row.bytes_moved / (levels[0]["read_gb_per_s"] * 1e9)))
    if row.dtype == "f32":  # narrower types have multiply-adds of their own
        bounds.append(Bound(MULTIPLY_ADDS, row.contraction_flops / (limits["fma_gflops"] * 1e9)))
    return max(bounds, key=lambda bound: bound.seconds)
