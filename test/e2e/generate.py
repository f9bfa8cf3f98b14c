"""Models that exercise a compiler's operators: `random_graph` draws whole graphs, `op_table` lists single operators.

Both keep to results that every correct compiler agrees on. In random graphs each value carries a bound on its
magnitude, and `exact`: whether every evaluation gives the same bits. Operators that jump (Floor, comparisons, Cast to
an integer, ...) are applied to exact values only, because a rounding error would otherwise become a wrong result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Attribute = float | str | Sequence[int]

# The first opset with Gelu; all reductions take their axes as an input.
OPSET = 20
IR_VERSION = 9

ELEMENT_TYPES: dict[str, int] = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "i8": TensorProto.INT8,
    "i32": TensorProto.INT32,
    "i64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}
NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}
_FLOATS = ("f32", "f16", "bf16")
_INTEGERS = ("i8", "i32", "i64")


class _Model:
    """Nodes, constants, inputs and outputs under construction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def input(self, shape: Shape, dtype: str) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, ELEMENT_TYPES[dtype], shape))
        return name

    def output(self, value: str, shape: Shape, dtype: str) -> None:
        self.outputs.append(helper.make_tensor_value_info(value, ELEMENT_TYPES[dtype], shape))

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, values: Sequence[int]) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def op(self, op_type: str, *inputs: str, **attributes: Attribute) -> str:
        name = f"v{len(self.nodes)}"
        node = helper.make_node(op_type, list(inputs), [name])
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self.nodes.append(node)
        return name

    def build(self) -> ModelProto:
        # A step that was given up may have left constants behind.
        used = {operand for node in self.nodes for operand in node.input}
        constants = [tensor for tensor in self.constants if tensor.name in used]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, constants)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(
            graph, producer_name="tilewright-test", opset_imports=[opset], ir_version=IR_VERSION
        )


# Random graphs.

# ONNX Runtime's CPU provider has hardly any bf16 kernel, so random graphs leave bf16 to the operator table.
_GRAPH_TYPES = ("f32", "f32", "f32", "f32", "f16", "f16", "i32", "i64", "bool")
_SIZES = (1, 2, 3, 5, 7, 9, 13, 17)
_MAX_ELEMENTS = 4096
_INPUT_BOUND = 4.0
_BOUNDS = {"f32": 64.0, "f16": 32.0, "i32": 1000.0, "i64": 1000.0, "bool": 1.0}
_MAX_NODES = 14
_MAX_LIVE = 3


@dataclass(frozen=True)
class _Value:
    name: str
    shape: Shape
    dtype: str
    bound: float
    exact: bool


def random_graph(seed: int) -> ModelProto:
    """The random graph of this seed: 4 to 14 nodes, 1 to 3 outputs, every node consumed or an output."""
    return _GraphMaker(seed).build()


class _GraphMaker:
    """Applies randomly picked steps. A step returns its result, or None where it does not apply to the operand."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 2])
        self.m = _Model(f"random_graph_{seed}")
        self.values: list[_Value] = []
        self.unused: list[_Value] = []
        self.steps: tuple[tuple[int, Callable[[_Value], _Value | None]], ...] = (
            (9, self._unary),
            (8, self._binary),
            (2, self._compare),
            (3, self._logical),
            (2, self._where),
            (2, self._cast),
            (1, self._clip),
            (5, self._reduce),
            (2, self._transpose),
            (2, self._reshape),
            (2, self._slice),
            (2, self._concat),
            (2, self._pad),
            (1, self._expand),
            (1, self._unsqueeze),
            (1, self._squeeze),
        )

    def build(self) -> ModelProto:
        for _ in range(int(self.rng.integers(1, _MAX_LIVE + 1))):
            self._input()
        weights = np.array([weight for weight, _ in self.steps], dtype=np.float64)
        # A step adds at most three nodes, and the steps below at most one for each of three inputs.
        target = int(self.rng.integers(4, _MAX_NODES - 2 - _MAX_LIVE))
        while len(self.m.nodes) < target:
            _, step = self.steps[int(self.rng.choice(len(self.steps), p=weights / weights.sum()))]
            result = step(self._operand())
            if result is not None:
                self._add(result)
        for value in list(self.unused):
            if value.name.startswith("x"):
                self._add(self._consume(value, "Not" if value.dtype == "bool" else "Neg"))
        for value in self.unused:
            self.m.output(value.name, value.shape, value.dtype)
        return self.m.build()

    # The pool of values.

    def _pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def _chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def _input(self) -> None:
        dtype = self._pick(_GRAPH_TYPES)
        rank = int(self.rng.integers(1, 5))
        shape = tuple(self._pick(_SIZES) for _ in range(rank))
        while math.prod(shape) > _MAX_ELEMENTS // 4:
            shape = tuple(self._pick(_SIZES) for _ in range(rank))
        bound = 1.0 if dtype == "bool" else _INPUT_BOUND
        self._add(_Value(self.m.input(shape, dtype), shape, dtype, bound, exact=True))

    def _add(self, value: _Value) -> None:
        self.values.append(value)
        self.unused.append(value)

    def _operand(self) -> _Value:
        """Mostly an unused value; always one while as many are live as there may be outputs."""
        if len(self.unused) >= _MAX_LIVE or self._chance(0.8):
            return self._pick(self.unused)  # type: ignore[no-any-return]
        return self._pick(self.values)  # type: ignore[no-any-return]

    def _use(self, *values: _Value) -> None:
        used = {value.name for value in values}
        self.unused = [value for value in self.unused if value.name not in used]

    def _consume(self, value: _Value, op: str, *others: str, **attributes: Attribute) -> _Value:
        """A node with the operand's shape, type, bound and exactness."""
        self._use(value)
        name = self.m.op(op, value.name, *others, **attributes)
        return _Value(name, value.shape, value.dtype, value.bound, value.exact)

    def _moved(self, value: _Value, shape: Shape, op: str, *others: str, **attributes: Attribute) -> _Value:
        """Data movement: another shape, the same values."""
        moved = self._consume(value, op, *others, **attributes)
        return _Value(moved.name, shape, moved.dtype, moved.bound, moved.exact)

    def _constant(self, shape: Shape, dtype: str, *, low: float = -3.0, high: float = 3.0) -> _Value:
        if dtype == "bool":
            data = np.asarray(self.rng.random(shape) < 0.5)
        elif dtype in _INTEGERS:
            data = np.asarray(self.rng.integers(int(low), int(high) + 1, shape))
        else:
            data = np.asarray(self.rng.uniform(low, high, shape))
        bound = max(abs(low), abs(high))
        return _Value(self.m.constant(data.astype(NUMPY_TYPES[dtype])), shape, dtype, bound, exact=True)

    def _partner(self, value: _Value) -> _Value:
        """A second operand that broadcasts with the first: an existing value, else a constant."""
        fitting = [
            other
            for other in self.values
            if other.dtype == value.dtype
            and other.name != value.name
            and _broadcasts(other.shape, value.shape)
        ]
        unused = [other for other in fitting if other in self.unused]
        if unused and self._chance(0.8):
            return self._pick(unused)  # type: ignore[no-any-return]
        if fitting and self._chance(0.5):
            return self._pick(fitting)  # type: ignore[no-any-return]
        shape = tuple(1 if self._chance(0.4) else size for size in value.shape)
        return self._constant(shape[int(self.rng.integers(len(shape) + 1)) :], value.dtype)

    # Elementwise steps.

    def _unary(self, x: _Value) -> _Value | None:
        if x.dtype == "bool":
            return self._consume(x, "Not")
        if x.dtype in _INTEGERS:
            # ONNX gives Relu no i64 kernel everywhere; Abs, Neg and Sign it does.
            op = self._pick(("Abs", "Neg", "Sign"))
            return self._consume(x, op)
        if self._chance(0.3):
            op = self._pick(("Abs", "Neg", "Relu", "Floor", "Ceil", "Round", "Sign"))
            jumps = op in ("Floor", "Ceil", "Round", "Sign")
            if jumps and not x.exact:
                return None
            y = self._consume(x, op)
            return _Value(y.name, y.shape, y.dtype, max(1.0, math.ceil(y.bound)), y.exact)
        return self._smooth_unary(x)

    def _smooth_unary(self, x: _Value) -> _Value | None:
        one = {"Tanh", "Sigmoid", "Erf", "Sin", "Cos", "HardSigmoid"}
        growing = {"LeakyRelu", "Elu", "Softplus", "Gelu"}
        op = self._pick((*sorted(one), *sorted(growing), "Exp", "Log", "Sqrt", "Reciprocal"))
        if op in one or op in growing:
            y = self._consume(x, op)
            bound = 1.0 if op in one else y.bound + 1.0
        elif op == "Exp":
            tame = x if x.bound <= _INPUT_BOUND else self._consume(x, "Tanh")
            bound = math.exp(x.bound if tame is x else 1.0)
            y = self._consume(tame, op)
        else:
            # Away from the singularity at 0: |x| + 0.5.
            positive = self._consume(x, "Abs")
            half = self.m.constant(np.array(0.5, dtype=NUMPY_TYPES[x.dtype]))
            shifted = self.m.op("Add", positive.name, half)
            y = _Value(self.m.op(op, shifted), x.shape, x.dtype, x.bound, exact=False)
            bound = max(2.0, x.bound)
        if bound > _BOUNDS[x.dtype]:
            # The node exists already, so tame it instead of refusing it.
            y, bound = _Value(self.m.op("Tanh", y.name), x.shape, x.dtype, 1.0, exact=False), 1.0
        return _Value(y.name, y.shape, y.dtype, bound, exact=False)

    def _binary(self, x: _Value) -> _Value | None:
        if x.dtype == "bool":
            return self._logical(x)
        op = self._pick(("Add", "Sub", "Mul", "Max", "Min", "Div", "Pow"))
        if (op, x.dtype) in _REFUSED:
            return None
        if op in ("Div", "Pow"):
            return self._guarded_binary(x, op)
        y = self._partner(x)
        bound = {"Add": x.bound + y.bound, "Sub": x.bound + y.bound, "Mul": x.bound * y.bound}.get(
            op, max(x.bound, y.bound)
        )
        if bound > _BOUNDS[x.dtype]:
            return None
        self._use(x, y)
        left, right = (y, x) if self._chance(0.5) else (x, y)
        exact = x.exact and y.exact and (op in ("Max", "Min") or x.dtype in _INTEGERS)
        name = self.m.op(op, left.name, right.name)
        return _Value(name, np.broadcast_shapes(x.shape, y.shape), x.dtype, bound, exact=exact)

    def _guarded_binary(self, x: _Value, op: str) -> _Value | None:
        if op == "Pow":
            exponent = int(self._pick((2, 3)))
            if x.bound**exponent > _BOUNDS[x.dtype]:
                return None
            power = self._consume(x, "Pow", self.m.constant(np.array(exponent, dtype=NUMPY_TYPES[x.dtype])))
            return _Value(power.name, x.shape, x.dtype, x.bound**exponent, exact=False)
        if x.dtype in _INTEGERS:
            divisor = self._constant(x.shape[-1:], x.dtype, low=1, high=5)
            return self._consume(x, "Div", divisor.name)
        y = self._partner(x)
        self._use(x, y)
        one = self.m.constant(np.array(1.0, dtype=NUMPY_TYPES[x.dtype]))
        divisor_name = self.m.op("Add", self.m.op("Abs", y.name), one)
        shape = np.broadcast_shapes(x.shape, y.shape)
        return _Value(self.m.op("Div", x.name, divisor_name), shape, x.dtype, x.bound, exact=False)

    def _compare(self, x: _Value) -> _Value | None:
        if x.dtype == "bool" or not x.exact:
            return None
        y = self._partner(x)
        if not y.exact:
            return None
        self._use(x, y)
        name = self.m.op(
            self._pick(("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")), x.name, y.name
        )
        return _Value(name, np.broadcast_shapes(x.shape, y.shape), "bool", 1.0, exact=True)

    def _logical(self, x: _Value) -> _Value | None:
        if x.dtype != "bool":
            return None
        y = self._partner(x)
        self._use(x, y)
        name = self.m.op(self._pick(("And", "Or", "Xor")), x.name, y.name)
        return _Value(name, np.broadcast_shapes(x.shape, y.shape), "bool", 1.0, exact=True)

    def _where(self, x: _Value) -> _Value | None:
        if x.dtype == "bool":
            return None
        conditions = [v for v in self.values if v.dtype == "bool" and _broadcasts(v.shape, x.shape)]
        condition = self._pick(conditions) if conditions else self._constant(x.shape, "bool")
        y = self._partner(x)
        if not _broadcasts(condition.shape, x.shape, y.shape):
            return None
        shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
        self._use(condition, x, y)
        name = self.m.op("Where", condition.name, x.name, y.name)
        return _Value(name, shape, x.dtype, max(x.bound, y.bound), exact=x.exact and y.exact)

    def _cast(self, x: _Value) -> _Value | None:
        target = self._pick(sorted(set(_GRAPH_TYPES) - {x.dtype}))
        to_float = target in _FLOATS
        if (not to_float and not x.exact) or x.bound > _BOUNDS[target] > 1.0:
            return None
        # Narrowing to f16 rounds; the float64 reference does not.
        exact = x.exact and not (x.dtype == "f32" and target == "f16")
        y = self._consume(x, "Cast", to=ELEMENT_TYPES[target])
        return _Value(y.name, y.shape, target, 1.0 if target == "bool" else y.bound, exact)

    def _clip(self, x: _Value) -> _Value | None:
        if x.dtype == "bool":
            return None
        low, high = (self.m.constant(np.array(end, dtype=NUMPY_TYPES[x.dtype])) for end in (-2, 3))
        y = self._consume(x, "Clip", low, high)
        return _Value(y.name, y.shape, y.dtype, min(y.bound, 3.0), y.exact)

    # Reductions and data movement.

    def _reduce(self, x: _Value) -> _Value | None:
        if x.dtype == "bool":
            return None
        rank = len(x.shape)
        axes = sorted(int(axis) for axis in self.rng.permutation(rank)[: int(self.rng.integers(1, rank + 1))])
        keep = len(axes) == rank or self._chance(0.5)
        count = math.prod(x.shape[axis] for axis in axes)
        ops = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd") + (
            () if ("ReduceMean", x.dtype) in _REFUSED else ("ReduceMean",)
        )
        op = self._pick(ops)
        bound = {"ReduceSum": x.bound * count, "ReduceProd": max(1.0, x.bound) ** min(count, 99)}.get(
            op, x.bound
        )
        if bound > _BOUNDS[x.dtype] * (4 if op == "ReduceSum" and x.dtype == "f32" else 1):
            return None
        exact = x.exact and (op in ("ReduceMax", "ReduceMin") or x.dtype in _INTEGERS)
        kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        shape = tuple(kept) if keep else tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
        signed = self._pick(axes) if len(axes) == 1 and self._chance(0.3) else None
        spelled = axes if signed is None else [signed - rank]
        y = self._consume(x, op, self.m.ints(spelled), keepdims=int(keep))
        return _Value(y.name, shape, x.dtype, bound, exact)

    def _transpose(self, x: _Value) -> _Value | None:
        if len(x.shape) < 2:
            return None
        perm = [int(axis) for axis in self.rng.permutation(len(x.shape))]
        return self._moved(x, tuple(x.shape[axis] for axis in perm), "Transpose", perm=perm)

    def _reshape(self, x: _Value) -> _Value | None:
        """Merges two neighbouring axes, or splits one by its smallest factor."""
        shape = list(x.shape)
        if len(shape) > 1 and self._chance(0.6):
            axis = int(self.rng.integers(len(shape) - 1))
            shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
        else:
            composite = [
                (a, f) for a, size in enumerate(shape) for f in (2, 3, 5) if size % f == 0 and size > f
            ]
            if not composite or len(shape) == 4:
                return None
            axis, factor = self._pick(composite)
            shape[axis : axis + 1] = [factor, shape[axis] // factor]
        spelled = list(shape)
        if self._chance(0.5):
            spelled[int(self.rng.integers(len(shape)))] = -1
        return self._moved(x, tuple(shape), "Reshape", self.m.ints(spelled))

    def _slice(self, x: _Value) -> _Value | None:
        axis = int(self.rng.integers(len(x.shape)))
        size = x.shape[axis]
        if size < 3:
            return None
        start, stop = int(self.rng.integers(0, size // 2)), size - int(self.rng.integers(0, size // 3 + 1))
        step = int(self._pick((1, 2, 3)))
        count = len(range(start, stop, step))
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        ends = [self.m.ints([entry]) for entry in (start, stop, axis, step)]
        return self._moved(x, shape, "Slice", *ends)

    def _concat(self, x: _Value) -> _Value | None:
        axis = int(self.rng.integers(len(x.shape)))
        others = [v for v in self.values if v.dtype == x.dtype and _same_but(v.shape, x.shape, axis)]
        y = self._pick(others) if others and self._chance(0.7) else self._constant(x.shape, x.dtype)
        shape = (*x.shape[:axis], x.shape[axis] + y.shape[axis], *x.shape[axis + 1 :])
        if math.prod(shape) > _MAX_ELEMENTS:
            return None
        self._use(x, y)
        name = self.m.op("Concat", x.name, y.name, axis=axis - (len(shape) if self._chance(0.3) else 0))
        return _Value(name, shape, x.dtype, max(x.bound, y.bound), exact=x.exact and y.exact)

    def _pad(self, x: _Value) -> _Value | None:
        if x.dtype == "bool":
            return None
        before, after = self.rng.integers(0, 3, (2, len(x.shape)))
        shape = tuple(int(size + b + a) for size, b, a in zip(x.shape, before, after, strict=True))
        if math.prod(shape) > _MAX_ELEMENTS:
            return None
        fill = self.m.constant(np.array(self._pick((-1, 0, 2)), dtype=NUMPY_TYPES[x.dtype]))
        y = self._moved(
            x, shape, "Pad", self.m.ints([*map(int, before), *map(int, after)]), fill, mode="constant"
        )
        return _Value(y.name, y.shape, y.dtype, max(2.0, y.bound), y.exact)

    def _expand(self, x: _Value) -> _Value | None:
        shape = tuple(int(self._pick((2, 3, 5))) if size == 1 else size for size in x.shape)
        if len(shape) < 4 and self._chance(0.5):
            shape = (int(self._pick((2, 3))), *shape)
        if shape == x.shape or math.prod(shape) > _MAX_ELEMENTS:
            return None
        return self._moved(x, shape, "Expand", self.m.ints(shape))

    def _unsqueeze(self, x: _Value) -> _Value | None:
        if len(x.shape) == 4:
            return None
        axis = int(self.rng.integers(len(x.shape) + 1))
        return self._moved(x, (*x.shape[:axis], 1, *x.shape[axis:]), "Unsqueeze", self.m.ints([axis]))

    def _squeeze(self, x: _Value) -> _Value | None:
        ones = [axis for axis, size in enumerate(x.shape) if size == 1]
        if not ones or len(x.shape) == 1:
            return None
        axis = int(self._pick(ones))
        return self._moved(x, (*x.shape[:axis], *x.shape[axis + 1 :]), "Squeeze", self.m.ints([axis]))


def _broadcasts(*shapes: Shape) -> bool:
    """Whether the shapes broadcast, to a rank and size that the graphs keep to."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return len(shape) <= 4 and math.prod(shape) <= _MAX_ELEMENTS


def _same_but(first: Shape, second: Shape, axis: int) -> bool:
    return len(first) == len(second) and all(
        a == b for i, (a, b) in enumerate(zip(first, second, strict=True)) if i != axis
    )


# The operator table.


@dataclass(frozen=True)
class OpCase:
    """One operator in one type, rank and form, with inputs on which its result is well conditioned."""

    id: str
    model: ModelProto
    inputs: tuple[Array, ...]

    def __repr__(self) -> str:
        return f"OpCase({self.id})"


# Distinct sizes, so that swapped dimensions show.
_TABLE_SHAPES: tuple[Shape, ...] = ((), (7,), (5, 3), (3, 7, 5), (3, 5, 2, 7))

# Operators with the range their floating-point inputs are drawn from.
_UNARY: dict[str, tuple[float, float]] = {
    "Abs": (-4, 4),
    "Neg": (-4, 4),
    "Exp": (-4, 4),
    "Log": (0.25, 4),
    "Sqrt": (0, 4),
    "Reciprocal": (0.25, 4),
    "Tanh": (-4, 4),
    "Sigmoid": (-4, 4),
    "Erf": (-3, 3),
    "Sin": (-4, 4),
    "Cos": (-4, 4),
    "Floor": (-4, 4),
    "Ceil": (-4, 4),
    "Round": (-4, 4),
    "Sign": (-4, 4),
    "Relu": (-4, 4),
    "LeakyRelu": (-4, 4),
    "Elu": (-4, 4),
    "Softplus": (-4, 4),
    "HardSigmoid": (-4, 4),
    "Gelu": (-4, 4),
    "Not": (0, 1),
}
_BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod", "And", "Or", "Xor")
_COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
_REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd")

# What stock IREE 3.13 gets wrong on CPU, by operator and type; left out of the table (and of random graphs).
# - Pow of integers goes through floating point: every negative base gives the lowest integer.
# - ReduceMean of integers does not compile: torch.constant.int fails to legalize.
_REFUSED = frozenset({("Pow", "i32"), ("Pow", "i64"), ("ReduceMean", "i32"), ("ReduceMean", "i64")})


def op_table() -> list[OpCase]:
    """Every supported operator in every type and rank. Deterministic; ids are unique."""
    parts = (_unary_cases, _binary_cases, _ternary_cases, _cast_cases, _reduce_cases, _normalisation_cases)
    return list(itertools.chain.from_iterable(part() for part in parts))


@cache
def _types_of(op: str, *, operand: int = 0) -> tuple[str, ...]:
    """The types that ONNX allows for the operand and IREE supports."""
    allowed = onnx.defs.get_schema(op, OPSET).inputs[operand].types
    return tuple(
        dtype
        for dtype, element in ELEMENT_TYPES.items()
        if f"tensor({_schema_name(element)})" in allowed and (op, dtype) not in _REFUSED
    )


def _schema_name(element: int) -> str:
    return str(TensorProto.DataType.Name(element)).lower()


def _data(rng: np.random.Generator, shape: Shape, dtype: str, low: float = -4.0, high: float = 4.0) -> Array:
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype in _INTEGERS:
        return np.asarray(rng.integers(math.ceil(low), math.floor(high) + 1, shape)).astype(
            NUMPY_TYPES[dtype]
        )
    return np.asarray(rng.uniform(low, high, shape)).astype(NUMPY_TYPES[dtype])


def _case(
    identifier: str,
    op: str,
    inputs: Sequence[Array],
    result: tuple[Shape, str],
    *,
    constants: Sequence[Array] = (),
    **attributes: Attribute,
) -> OpCase:
    """A model of one node: `inputs` are graph inputs, `constants` the operands after them."""
    m = _Model(identifier)
    names = [m.input(value.shape, _name_of(value.dtype)) for value in inputs]
    names += [m.constant(value) for value in constants]
    m.output(m.op(op, *names, **attributes), *result)
    return OpCase(identifier, m.build(), tuple(inputs))


def _name_of(dtype: np.dtype[Any]) -> str:
    return next(name for name, candidate in NUMPY_TYPES.items() if candidate == dtype)


def _rng(identifier: str) -> np.random.Generator:
    return np.random.default_rng(list(identifier.encode()))


def _unary_cases() -> Iterator[OpCase]:
    for op, (low, high) in _UNARY.items():
        for dtype, shape in itertools.product(_types_of(op), _TABLE_SHAPES):
            identifier = f"{op}-{dtype}-r{len(shape)}".lower()
            yield _case(identifier, op, [_data(_rng(identifier), shape, dtype, low, high)], (shape, dtype))
    for dtype in _types_of("Gelu"):
        identifier = f"gelu-tanh-{dtype}-r2"
        data = _data(_rng(identifier), (5, 3), dtype)
        yield _case(identifier, "Gelu", [data], ((5, 3), dtype), approximate="tanh")


def _binary_cases() -> Iterator[OpCase]:
    """Both operands of the same shape, and one that broadcasts along every other axis."""
    for op in (*_BINARY, *_COMPARISONS):
        for dtype, shape in itertools.product(_types_of(op), _TABLE_SHAPES):
            forms = {"": shape}
            if shape:
                forms["-broadcast"] = tuple(1 if axis % 2 else size for axis, size in enumerate(shape))[-3:]
            for form, right_shape in forms.items():
                identifier = f"{op}-{dtype}-r{len(shape)}{form}".lower()
                rng = _rng(identifier)
                left, right = _operands(op, dtype, _data(rng, shape, dtype), right_shape, rng)
                output = "bool" if op in _COMPARISONS else dtype
                result = (np.broadcast_shapes(shape, right_shape), output)
                if op == "Mod":
                    yield _case(identifier, op, [left, right], result, fmod=int(dtype in _FLOATS))
                else:
                    yield _case(identifier, op, [left, right], result)


def _operands(
    op: str, dtype: str, left: Array, shape: Shape, rng: np.random.Generator
) -> tuple[Array, Array]:
    if op in ("Div", "Mod"):
        return left, _data(rng, shape, dtype, 1.0, 4.0)
    if op == "Pow":
        return _data(rng, left.shape, dtype, 0.25, 3.0), _data(rng, shape, dtype, -2.0, 2.0)
    return left, _data(rng, shape, dtype)


def _ternary_cases() -> Iterator[OpCase]:
    for dtype, shape in itertools.product(_types_of("Where", operand=1), _TABLE_SHAPES):
        identifier = f"where-{dtype}-r{len(shape)}"
        rng = _rng(identifier)
        condition, left = _data(rng, shape[-2:], "bool"), _data(rng, shape, dtype)
        right = _data(rng, shape[-1:], dtype)
        yield _case(identifier, "Where", [condition, left, right], (shape, dtype))
    for dtype, shape in itertools.product(_types_of("Clip"), _TABLE_SHAPES):
        identifier = f"clip-{dtype}-r{len(shape)}"
        ends = [np.array(end, dtype=NUMPY_TYPES[dtype]) for end in (-2, 3)]
        yield _case(
            identifier, "Clip", [_data(_rng(identifier), shape, dtype)], (shape, dtype), constants=ends
        )


def _cast_cases() -> Iterator[OpCase]:
    for source, target in itertools.permutations(ELEMENT_TYPES, 2):
        for shape in _TABLE_SHAPES:
            identifier = f"cast-{source}-{target}-r{len(shape)}"
            data = _data(_rng(identifier), shape, source)
            yield _case(identifier, "Cast", [data], (shape, target), to=ELEMENT_TYPES[target])


def _axis_sets(rank: int) -> dict[str, list[int]]:
    """Names of axis sets of this rank; those that coincide are listed once."""
    sets = {"last": [rank - 1]}
    if rank > 1:
        sets |= {"first": [0], "all": list(range(rank))}
    if rank > 2:
        sets |= {"middle": [1], "several": [0, 2]}
    return sets


def _reduce_cases() -> Iterator[OpCase]:
    for op in _REDUCTIONS:
        for dtype, shape in itertools.product(_types_of(op), _TABLE_SHAPES[1:]):
            for (name, axes), keep in itertools.product(_axis_sets(len(shape)).items(), (False, True)):
                identifier = f"{op}-{dtype}-r{len(shape)}-{name}{'-keep' if keep else ''}".lower()
                yield _reduce_case(identifier, op, dtype, shape, axes, keep=keep)


def _reduce_case(
    identifier: str, op: str, dtype: str, shape: Shape, axes: list[int], *, keep: bool
) -> OpCase:
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    result = kept if keep else tuple(size for axis, size in enumerate(shape) if axis not in axes)
    # Sums and means of positive values do not cancel; products of values near one neither vanish nor overflow.
    ranges = {"ReduceSum": (0.25, 2.0), "ReduceMean": (0.25, 2.0), "ReduceProd": (0.9, 1.1)}
    low, high = ranges.get(op, (-4.0, 4.0))
    if dtype in _INTEGERS:
        low, high = (-1.0, 1.0) if op == "ReduceProd" else (-4.0, 4.0)
    if dtype == "i8" and op == "ReduceSum":
        low, high = 0.0, 1.0
    data = _data(_rng(identifier), shape, dtype, low, high)
    axes_constant = np.array(axes, dtype=np.int64)
    return _case(identifier, op, [data], (result, dtype), constants=[axes_constant], keepdims=int(keep))


def _normalisation_cases() -> Iterator[OpCase]:
    for op in ("Softmax", "LogSoftmax"):
        for dtype, shape in itertools.product(_types_of(op), _TABLE_SHAPES[1:]):
            for axis in sorted({0, len(shape) - 1}):
                identifier = f"{op}-{dtype}-r{len(shape)}-axis{axis}".lower()
                yield _case(
                    identifier, op, [_data(_rng(identifier), shape, dtype)], (shape, dtype), axis=axis
                )
    for dtype, shape in itertools.product(_types_of("LayerNormalization"), _TABLE_SHAPES[2:]):
        for axis in sorted({1, len(shape) - 1}):
            identifier = f"layernormalization-{dtype}-r{len(shape)}-axis{axis}"
            rng = _rng(identifier)
            gain, bias = _data(rng, shape[axis:], dtype, 0.5, 1.5), _data(rng, shape[axis:], dtype, -1, 1)
            inputs = [_data(rng, shape, dtype), gain, bias]
            yield _case(identifier, "LayerNormalization", inputs, (shape, dtype), axis=axis, epsilon=1e-5)
    for op in ("ArgMax", "ArgMin"):
        for dtype, shape in itertools.product(_types_of(op), _TABLE_SHAPES[1:]):
            for axis, keep in itertools.product(sorted({0, len(shape) - 1}), (0, 1)):
                identifier = f"{op}-{dtype}-r{len(shape)}-axis{axis}{'-keep' if keep else ''}".lower()
                kept = (*shape[:axis], *([1] if keep else []), *shape[axis + 1 :])
                data = _data(_rng(identifier), shape, dtype)
                yield _case(identifier, op, [data], (kept, "i64"), axis=axis, keepdims=keep)
