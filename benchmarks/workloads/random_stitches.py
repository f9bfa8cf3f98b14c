"""Random stitching problems: elementwise chains around two or more dependent reductions.

Every graph is a chain of stages `v -> elementwise -> reduce(keepdims) -> combine with a full-shape value -> v`, so that
each reduction depends on the one before. Three rules keep results comparable between compilers:
- sums and means have only positive inputs, so no reduction cancels;
- exp has only bounded inputs, and divisors and radicands are at least 0.5;
- a value that may have grown is squashed before it is used again.
Attempts whose results hardly vary, in which a wrong reduction would go unnoticed, are drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from benchmarks.workloads.builder import GraphBuilder

SEEDS = range(50)

_SIZES = (3, 5, 7, 11, 17, 33, 65, 77, 127, 129, 197, 257, 515)
_MAX_ELEMENTS = 1 << 17
_SQUASH_ABOVE = 8.0
_MIN_DEVIATION = 0.05
_MAX_RESULT = 32.0
_MAX_ATTEMPTS = 100


@dataclass(frozen=True)
class _Value:
    """A full-shape or reduced value.

    `bound` is its typical largest magnitude; `positive` is True if it is never below 0.
    """

    name: str
    bound: float
    positive: bool = False


def random_stitch(seed: int) -> onnx.ModelProto:
    """Returns the stitching problem of this seed. Every fourth seed reduces over differing axes, the others over one
    set."""
    for attempt in range(_MAX_ATTEMPTS):
        model = _Stitcher(seed, attempt).build()
        if _varies(model):
            return model
    raise RuntimeError(f"random_stitch({seed}): {_MAX_ATTEMPTS} attempts gave only near-constant results")


def _varies(model: onnx.ModelProto) -> bool:
    """True if every result spreads over a fair part of its magnitude, on standard normal inputs."""
    rng = np.random.default_rng(0)
    inputs = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        inputs[value.name] = rng.standard_normal(shape, dtype=np.float32)
    results = ReferenceEvaluator(model).run(None, inputs)
    return all(y.std() >= _MIN_DEVIATION and np.abs(y).max() <= _MAX_RESULT for y in map(np.asarray, results))


class _Stitcher:
    def __init__(self, seed: int, attempt: int) -> None:
        self.g = GraphBuilder(f"random_stitch_{seed}", seed=seed)
        self.rng = np.random.default_rng([seed, attempt])
        self.shape = self._pick_shape()
        self.stages = int(self.rng.integers(2, 5))
        self.axes = self._pick_axes(differing=seed % 4 == 3)

    def build(self) -> onnx.ModelProto:
        x = _Value(self.g.input("x", self.shape), 4.0)
        others = self._other_inputs()
        value, full_values = x, [x]
        for stage, axes in enumerate(self.axes):
            value = self._elementwise(
                value, others if stage == 0 else others[:1], at_least=len(others) if not stage else 0
            )
            reduced = self._reduce(value, axes)
            if stage == self.stages - 1 and self.rng.random() < 0.3:
                self.g.output(reduced.name, self._reduced_shape(axes))
                return self.g.build()
            if stage == self.stages - 2 and self.rng.random() < 0.2:
                self.g.output(reduced.name, self._reduced_shape(axes))
            # The value itself is the usual partner; an earlier one makes a long-lived tensor.
            partner = (
                value if self.rng.random() < 0.6 else full_values[int(self.rng.integers(len(full_values)))]
            )
            value = self._squash(self._combine(partner, reduced))
            full_values.append(value)
        value = self._elementwise(value, [], at_least=0)
        self.g.output(value.name, self.shape)
        return self.g.build()

    # Choices of shape and axes

    def _pick_shape(self) -> list[int]:
        rank = int(self.rng.integers(2, 5))
        while True:
            shape = [int(size) for size in self.rng.choice(_SIZES, rank)]
            if math.prod(shape) <= _MAX_ELEMENTS:
                return shape

    def _pick_axes(self, *, differing: bool) -> list[list[int]]:
        rank = len(self.shape)
        trailing = [list(range(start, rank)) for start in range(max(1, rank - 2), rank)]
        middle = [[axis] for axis in range(1, rank - 1)]
        if not differing:
            choices = middle if middle and self.rng.random() < 0.25 else trailing
            return [choices[int(self.rng.integers(len(choices)))]] * self.stages
        choices = [[axis] for axis in range(rank)] + [axes for axes in trailing if len(axes) > 1]
        first, second = (choices[int(i)] for i in self.rng.permutation(len(choices))[:2])
        return [first if stage % 2 == 0 else second for stage in range(self.stages)]

    def _reduced_shape(self, axes: Sequence[int]) -> list[int]:
        return [1 if axis in axes else size for axis, size in enumerate(self.shape)]

    def _other_inputs(self) -> list[_Value]:
        """Adds up to two more inputs: a full one, a vector of the last axis, or one that broadcasts over inner axes."""
        outer = [size if axis == 0 else 1 for axis, size in enumerate(self.shape)]
        forms = [("y", self.shape), ("bias", self.shape[-1:]), ("row", outer)]
        picked = self.rng.permutation(len(forms))[: int(self.rng.integers(0, 3))]
        return [_Value(self.g.input(forms[int(i)][0], forms[int(i)][1]), 4.0) for i in picked]

    # Steps; each returns the value that it made

    def _scaled(self, value: _Value, factor: float, offset: float = 0.0) -> _Value:
        name = self.g.op("Mul", value.name, self.g.scalar(factor))
        if offset:
            name = self.g.op("Add", name, self.g.scalar(offset))
        positive = value.positive and factor >= 0 and offset >= 0
        return _Value(name, value.bound * abs(factor) + abs(offset), positive)

    def _squash(self, value: _Value) -> _Value:
        if value.bound <= _SQUASH_ABOVE:
            return value
        return self._scaled(value, 4.0 / value.bound)

    def _unary(self, value: _Value) -> _Value:
        kind = str(
            self.rng.choice(
                ["tanh", "sigmoid", "abs", "relu", "scale", "exp", "sqrt", "erf", "square", "silu"]
            )
        )
        g = self.g
        if kind == "tanh":
            return _Value(g.op("Tanh", value.name), 1.0, value.positive)
        if kind == "sigmoid":
            return _Value(g.op("Sigmoid", value.name), 1.0, True)
        if kind == "abs":
            return _Value(g.op("Abs", value.name), value.bound, True)
        if kind == "relu":
            # The shift keeps a value that is negative everywhere from becoming all zeros.
            shifted = self._scaled(value, 1.0, 0.25)
            return self._scaled(_Value(g.op("Relu", shifted.name), shifted.bound, True), 1.0, 0.125)
        if kind == "scale":
            return self._scaled(
                value, float(self.rng.choice([-0.75, 0.5, 1.25])), float(self.rng.choice([0.0, 0.375]))
            )
        if kind == "exp":
            return _Value(g.op("Exp", g.op("Tanh", value.name)), math.e, True)
        if kind == "sqrt":
            magnitude = _Value(g.op("Abs", value.name), value.bound, True)
            return _Value(
                g.op("Sqrt", self._scaled(magnitude, 1.0, 0.5).name), math.sqrt(value.bound + 0.5), True
            )
        if kind == "erf":
            return _Value(g.op("Erf", value.name), 1.0, value.positive)
        if kind == "square":
            return self._squash(_Value(g.op("Mul", value.name, value.name), value.bound**2, True))
        return _Value(g.op("Mul", value.name, g.op("Sigmoid", value.name)), value.bound)

    def _elementwise(self, value: _Value, others: Sequence[_Value], *, at_least: int) -> _Value:
        """Mixes every other input in once, with up to two unary operations around them."""
        for other in others[: max(at_least, int(self.rng.integers(0, 2)))]:
            kind = str(self.rng.choice(["Add", "Sub", "Mul", "Max"]))
            bound = value.bound * other.bound if kind == "Mul" else value.bound + other.bound
            value = self._squash(_Value(self.g.op(kind, value.name, other.name), bound))
        for _ in range(int(self.rng.integers(0, 3))):
            value = self._unary(value)
        return value

    def _positive(self, value: _Value) -> _Value:
        if value.positive:
            return value
        kind = str(self.rng.choice(["Mul", "Sigmoid", "Exp"]))
        if kind == "Mul":
            return self._squash(_Value(self.g.op("Mul", value.name, value.name), value.bound**2, True))
        if kind == "Sigmoid":
            return _Value(self.g.op("Sigmoid", value.name), 1.0, True)
        return _Value(self.g.op("Exp", self.g.op("Tanh", value.name)), math.e, True)

    def _reduce(self, value: _Value, axes: Sequence[int]) -> _Value:
        g, count = self.g, math.prod(self.shape[axis] for axis in axes)
        kind = str(self.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"]))
        if kind in ("ReduceSum", "ReduceMean"):
            value = self._positive(value)
        if kind == "ReduceSum":
            total = _Value(g.op(kind, value.name, g.ints(axes), keepdims=1), value.bound * count, True)
            return self._scaled(total, 1.0 / count)
        reduced = _Value(g.op(kind, value.name, axes=list(axes), keepdims=1), value.bound, value.positive)
        if kind == "ReduceL2":
            return self._scaled(
                _Value(reduced.name, value.bound * math.sqrt(count), True), 1.0 / math.sqrt(count)
            )
        return reduced

    def _combine(self, value: _Value, reduced: _Value) -> _Value:
        """Broadcasts the reduced value back into a full one."""
        g, kind = self.g, str(self.rng.choice(["Sub", "Mul", "Div", "Add", "exp_sub"]))
        if kind == "Div":
            magnitude = (
                reduced if reduced.positive else _Value(g.op("Abs", reduced.name), reduced.bound, True)
            )
            divisor = self._scaled(magnitude, 1.0, 0.5)
            return _Value(g.op("Div", value.name, divisor.name), value.bound / 0.5, value.positive)
        if kind == "Mul":
            bound = value.bound * reduced.bound
            return _Value(g.op("Mul", value.name, reduced.name), bound, value.positive and reduced.positive)
        if kind == "exp_sub":
            difference = g.op("Sub", value.name, reduced.name)
            return _Value(g.op("Exp", g.op("Neg", g.op("Abs", g.op("Tanh", difference)))), 1.0, True)
        bound = value.bound + reduced.bound
        return _Value(
            g.op(kind, value.name, reduced.name), bound, kind == "Add" and value.positive and reduced.positive
        )
