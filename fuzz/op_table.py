"""Table of all supported operators, each alone in every type, rank and form, with inputs on which its result is well
conditioned."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from fuzz.builder import (
    ELEMENT_TYPES,
    FLOATS,
    INTEGERS,
    NUMPY_TYPES,
    Array,
    Attribute,
    ModelBuilder,
    Shape,
    name_of,
    types_of,
)
from fuzz.elementwise import ARITHMETIC, COMPARISONS, GUARDED, LOGICAL
from fuzz.reducing import REDUCTIONS, SEARCHES, SOFTMAXES


@dataclass(frozen=True)
class OpCase:
    """One operator in one type, rank and form, with inputs on which its result is well conditioned."""

    id: str
    model: ModelProto
    inputs: tuple[Array, ...]

    def __repr__(self) -> str:
        return f"OpCase({self.id})"


# The sizes are distinct, so that swapped dims show.
_TABLE_SHAPES: tuple[Shape, ...] = ((), (7,), (5, 3), (3, 7, 5), (3, 5, 2, 7))

# Maps each operator to the range of its floating-point inputs.
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
_BINARY = (*ARITHMETIC, *GUARDED, *LOGICAL)


def op_table() -> list[OpCase]:
    """Returns every supported operator in every type and rank. The list is deterministic, and ids are unique."""
    parts = (_unary_cases, _binary_cases, _ternary_cases, _cast_cases, _reduce_cases, _normalisation_cases)
    return list(itertools.chain.from_iterable(part() for part in parts))


def _data(rng: np.random.Generator, shape: Shape, dtype: str, low: float = -4.0, high: float = 4.0) -> Array:
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype in INTEGERS:
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
    """Makes a model of one node: `inputs` are graph inputs, `constants` are the operands after them."""
    m = ModelBuilder(identifier)
    names = [m.input(value.shape, name_of(value.dtype)) for value in inputs]
    names += [m.constant(value) for value in constants]
    m.output(m.op(op, *names, **attributes), *result)
    return OpCase(identifier, m.build(), tuple(inputs))


def _rng(identifier: str) -> np.random.Generator:
    return np.random.default_rng(list(identifier.encode()))


def _unary_cases() -> Iterator[OpCase]:
    for op, (low, high) in _UNARY.items():
        for dtype, shape in itertools.product(types_of(op), _TABLE_SHAPES):
            identifier = f"{op}-{dtype}-r{len(shape)}".lower()
            yield _case(identifier, op, [_data(_rng(identifier), shape, dtype, low, high)], (shape, dtype))
    for dtype in types_of("Gelu"):
        identifier = f"gelu-tanh-{dtype}-r2"
        data = _data(_rng(identifier), (5, 3), dtype)
        yield _case(identifier, "Gelu", [data], ((5, 3), dtype), approximate="tanh")


def _binary_cases() -> Iterator[OpCase]:
    """Yields cases with operands of the same shape, and with one that broadcasts along every other axis."""
    for op in (*_BINARY, *COMPARISONS):
        for dtype, shape in itertools.product(types_of(op), _TABLE_SHAPES):
            forms = {"": shape}
            if shape:
                forms["-broadcast"] = tuple(1 if axis % 2 else size for axis, size in enumerate(shape))[-3:]
            for form, right_shape in forms.items():
                identifier = f"{op}-{dtype}-r{len(shape)}{form}".lower()
                rng = _rng(identifier)
                left, right = _operands(op, dtype, _data(rng, shape, dtype), right_shape, rng)
                output = "bool" if op in COMPARISONS else dtype
                result = (np.broadcast_shapes(shape, right_shape), output)
                if op == "Mod":
                    yield _case(identifier, op, [left, right], result, fmod=int(dtype in FLOATS))
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
    for dtype, shape in itertools.product(types_of("Where"), _TABLE_SHAPES):
        identifier = f"where-{dtype}-r{len(shape)}"
        rng = _rng(identifier)
        condition, left = _data(rng, shape[-2:], "bool"), _data(rng, shape, dtype)
        right = _data(rng, shape[-1:], dtype)
        yield _case(identifier, "Where", [condition, left, right], (shape, dtype))
    for dtype, shape in itertools.product(types_of("Clip"), _TABLE_SHAPES):
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
    """Returns sets of axes of this rank by name, without duplicates."""
    sets = {"last": [rank - 1]}
    if rank > 1:
        sets |= {"first": [0], "all": list(range(rank))}
    if rank > 2:
        sets |= {"middle": [1], "several": [0, 2]}
    return sets


def _reduce_cases() -> Iterator[OpCase]:
    for op in REDUCTIONS:
        for dtype, shape in itertools.product(types_of(op), _TABLE_SHAPES[1:]):
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
    if dtype in INTEGERS:
        low, high = (-1.0, 1.0) if op == "ReduceProd" else (-4.0, 4.0)
    if dtype == "i8" and op == "ReduceSum":
        low, high = 0.0, 1.0
    data = _data(_rng(identifier), shape, dtype, low, high)
    axes_constant = np.array(axes, dtype=np.int64)
    return _case(identifier, op, [data], (result, dtype), constants=[axes_constant], keepdims=int(keep))


def _normalisation_cases() -> Iterator[OpCase]:
    for op in SOFTMAXES:
        for dtype, shape in itertools.product(types_of(op), _TABLE_SHAPES[1:]):
            for axis in sorted({0, len(shape) - 1}):
                identifier = f"{op}-{dtype}-r{len(shape)}-axis{axis}".lower()
                yield _case(
                    identifier, op, [_data(_rng(identifier), shape, dtype)], (shape, dtype), axis=axis
                )
    for dtype, shape in itertools.product(types_of("LayerNormalization"), _TABLE_SHAPES[2:]):
        for axis in sorted({1, len(shape) - 1}):
            identifier = f"layernormalization-{dtype}-r{len(shape)}-axis{axis}"
            rng = _rng(identifier)
            gain, bias = _data(rng, shape[axis:], dtype, 0.5, 1.5), _data(rng, shape[axis:], dtype, -1, 1)
            inputs = [_data(rng, shape, dtype), gain, bias]
            yield _case(identifier, "LayerNormalization", inputs, (shape, dtype), axis=axis, epsilon=1e-5)
    for op in SEARCHES:
        for dtype, shape in itertools.product(types_of(op), _TABLE_SHAPES[1:]):
            for axis, keep in itertools.product(sorted({0, len(shape) - 1}), (0, 1)):
                identifier = f"{op}-{dtype}-r{len(shape)}-axis{axis}{'-keep' if keep else ''}".lower()
                kept = (*shape[:axis], *([1] if keep else []), *shape[axis + 1 :])
                data = _data(_rng(identifier), shape, dtype)
                yield _case(identifier, op, [data], (kept, "i64"), axis=axis, keepdims=keep)
