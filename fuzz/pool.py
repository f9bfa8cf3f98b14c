"""The values of a random graph while it grows, with facts about their elements.

A value has a bound on its magnitude, and is `exact` if every evaluation gives the same bits. Operators that jump
(Floor, comparisons, Cast to an integer, ...) are applied to exact values only, because a rounding error would
otherwise change the result completely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fuzz.builder import INTEGERS, NUMPY_TYPES, Attribute, ModelBuilder, Shape

T = TypeVar("T")

SIZES = (1, 2, 3, 5, 7, 9, 13, 17)
MAX_RANK = 4
MAX_ELEMENTS = 4096
MAX_LIVE = 3
INPUT_BOUND = 4.0
BOUNDS = {"f32": 64.0, "f16": 32.0, "bf16": 32.0, "i8": 100.0, "i32": 1000.0, "i64": 1000.0, "bool": 1.0}


@dataclass(frozen=True)
class Value:
    """A tensor of the graph; `bound` limits the magnitude of its elements."""

    name: str
    shape: Shape
    dtype: str
    bound: float
    exact: bool

    @property
    def is_input(self) -> bool:
        return self.name.startswith("x")


class Pool:
    """All values that a graph can compute with, and those that nothing uses yet."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.rng = rng
        self.m = ModelBuilder(name)
        self.values: list[Value] = []
        self.unused: list[Value] = []

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def input(self, dtype: str) -> Value:
        shape = self.shape()
        bound = 1.0 if dtype == "bool" else INPUT_BOUND
        value = Value(self.m.input(shape, dtype), shape, dtype, bound, exact=True)
        self.add(value)
        return value

    def shape(self) -> Shape:
        """Draws the shape of an input."""
        rank = int(self.rng.integers(1, MAX_RANK + 1))
        shape = tuple(self.pick(SIZES) for _ in range(rank))
        while math.prod(shape) > MAX_ELEMENTS // 4:
            shape = tuple(self.pick(SIZES) for _ in range(rank))
        return shape

    def drop_input(self, value: Value) -> None:
        """Removes the newest input, which nothing uses."""
        self.m.inputs.pop()
        self.values.remove(value)
        self.unused.remove(value)

    def add(self, value: Value) -> None:
        self.values.append(value)
        self.unused.append(value)

    def operand(self) -> Value:
        """Draws a value, usually an unused one; always an unused one if there are as many as a graph may have
        outputs."""
        if len(self.unused) >= MAX_LIVE or self.chance(0.8):
            return self.pick(self.unused)
        return self.pick(self.values)

    def use(self, *values: Value) -> None:
        used = {value.name for value in values}
        self.unused = [value for value in self.unused if value.name not in used]

    def consume(self, value: Value, op: str, *others: str, **attributes: Attribute) -> Value:
        """Adds a node with the operand's shape, type, bound and exactness."""
        self.use(value)
        name = self.m.op(op, value.name, *others, **attributes)
        return Value(name, value.shape, value.dtype, value.bound, value.exact)

    def moved(self, value: Value, shape: Shape, op: str, *others: str, **attributes: Attribute) -> Value:
        """Adds a node that moves data: another shape with the same values."""
        moved = self.consume(value, op, *others, **attributes)
        return Value(moved.name, shape, moved.dtype, moved.bound, moved.exact)

    def constant(self, shape: Shape, dtype: str, *, low: float = -3.0, high: float = 3.0) -> Value:
        if dtype == "bool":
            data = np.asarray(self.rng.random(shape) < 0.5)
        elif dtype in INTEGERS:
            data = np.asarray(self.rng.integers(int(low), int(high) + 1, shape))
        else:
            data = np.asarray(self.rng.uniform(low, high, shape))
        bound = max(abs(low), abs(high))
        name = self.m.constant(data.astype(NUMPY_TYPES[dtype]))
        return Value(name, shape, dtype, bound, exact=True)

    def partner(self, value: Value) -> Value:
        """Returns a second operand that broadcasts with the first: an existing value, else a constant."""
        fitting = [
            other
            for other in self.values
            if other.dtype == value.dtype
            and other.name != value.name
            and broadcasts(other.shape, value.shape)
        ]
        unused = [other for other in fitting if other in self.unused]
        if unused and self.chance(0.8):
            return self.pick(unused)
        if fitting and self.chance(0.5):
            return self.pick(fitting)
        shape = tuple(1 if self.chance(0.4) else size for size in value.shape)
        return self.constant(shape[int(self.rng.integers(len(shape) + 1)) :], value.dtype)


def broadcasts(*shapes: Shape) -> bool:
    """Returns True if the shapes broadcast to a rank and size within the limits of the graphs."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return len(shape) <= MAX_RANK and math.prod(shape) <= MAX_ELEMENTS


def result(name: str, shape: Sequence[Any], dtype: str, bound: float, *, exact: bool) -> Value:
    """Returns the value of a node that was just added; numpy's sizes become Python integers."""
    return Value(name, tuple(int(size) for size in shape), dtype, bound, exact)
