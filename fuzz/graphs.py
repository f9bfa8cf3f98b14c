"""Random graphs of 4 to about 20 nodes and 1 to 6 outputs, in which every node is consumed or an output.

Every graph begins with operators drawn evenly from all pairs of operator and type, two for each of its inputs, so that
over many graphs every pair occurs often; all further operators are drawn by weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from onnx import ModelProto

from fuzz import elementwise, movement, reducing
from fuzz.builder import types_of
from fuzz.pool import MAX_LIVE, Pool, Value

Step = Callable[[Pool, Value, str], Value | None]

_LEAST_NODES, _MOST_NODES = 4, 10
# A pair may need several tries until a shape fits the operator.
_TRIES = 8


@dataclass(frozen=True)
class Family:
    """Operators that one step applies, and the weight with which it is drawn."""

    weight: int
    step: Step
    ops: Sequence[str]


FAMILIES: tuple[Family, ...] = (
    Family(3, elementwise.piecewise, elementwise.PIECEWISE),
    Family(1, elementwise.invert, ("Not",)),
    Family(7, elementwise.smooth, elementwise.SMOOTH),
    Family(7, elementwise.arithmetic, elementwise.ARITHMETIC),
    Family(2, elementwise.guarded, elementwise.GUARDED),
    Family(2, elementwise.compare, elementwise.COMPARISONS),
    Family(3, elementwise.logical, elementwise.LOGICAL),
    Family(2, elementwise.select, ("Where",)),
    Family(2, elementwise.cast, ("Cast",)),
    Family(1, elementwise.clip, ("Clip",)),
    Family(5, reducing.reduce, reducing.REDUCTIONS),
    Family(2, reducing.softmax, reducing.SOFTMAXES),
    Family(1, reducing.layer_norm, ("LayerNormalization",)),
    Family(1, reducing.search, reducing.SEARCHES),
    Family(2, movement.transpose, ("Transpose",)),
    Family(2, movement.reshape, ("Reshape",)),
    Family(2, movement.slice_axis, ("Slice",)),
    Family(2, movement.concat, ("Concat",)),
    Family(2, movement.pad, ("Pad",)),
    Family(1, movement.expand, ("Expand",)),
    Family(1, movement.unsqueeze, ("Unsqueeze",)),
    Family(1, movement.squeeze, ("Squeeze",)),
)


@cache
def pairs(families: tuple[Family, ...] = FAMILIES) -> tuple[tuple[str, str], ...]:
    """Returns every operator with every type that it supports."""
    return tuple((op, dtype) for family in families for op in family.ops for dtype in types_of(op))


def random_graph(seed: int) -> ModelProto:
    """Returns the random graph of this seed."""
    pool = Pool(f"random_graph_{seed}", np.random.default_rng([seed, 2]))
    for _ in range(int(pool.rng.integers(1, MAX_LIVE + 1))):
        begin(pool, FAMILIES)
    grow(pool, FAMILIES, int(pool.rng.integers(_LEAST_NODES, _MOST_NODES + 1)))
    return finish(pool)


def grow(pool: Pool, families: tuple[Family, ...], nodes: int) -> None:
    """Adds operators of the families, drawn by weight, until the graph has that many nodes."""
    weights = np.array([family.weight for family in families], dtype=np.float64)
    while len(pool.m.nodes) < nodes:
        family = families[int(pool.rng.choice(len(families), p=weights / weights.sum()))]
        apply(pool, pool.operand(), family, pool.pick(family.ops))


def finish(pool: Pool) -> ModelProto:
    """Returns the graph, whose outputs are its unused values; an unused input first goes through an operator."""
    for value in list(pool.unused):
        if value.is_input:
            pool.add(pool.consume(value, "Not" if value.dtype == "bool" else "Neg"))
    for value in pool.unused:
        pool.m.output(value.name, value.shape, value.dtype)
    return pool.m.build()


def begin(pool: Pool, families: tuple[Family, ...], *, tries: int = _TRIES) -> None:
    """Adds an input with operators on it, drawn evenly from all pairs of operator and type."""
    op, dtype = pool.pick(pairs(families))
    x = pool.input(dtype)
    for _ in range(tries):
        if apply(pool, x, _family(families, op), op):
            break
        pool.drop_input(x)
        x = pool.input(dtype)
    more = pool.pick([op for op, other in pairs(families) if other == dtype])
    apply(pool, x, _family(families, more), more)


def _family(families: tuple[Family, ...], op: str) -> Family:
    return next(family for family in families if op in family.ops)


def apply(pool: Pool, x: Value, family: Family, op: str) -> bool:
    """Adds the operator's result; returns False if the operator does not fit the value."""
    if x.dtype not in types_of(op):
        return False
    y = family.step(pool, x, op)
    if y is not None:
        pool.add(y)
    return y is not None
