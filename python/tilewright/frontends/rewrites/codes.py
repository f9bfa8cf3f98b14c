"""Types of eight bits or fewer that IREE lacks, as bytes with their bits: their *codes*.

A code is decoded by a table, which is exact for every code. It is found by comparisons with the bounds between
neighbouring values, so that ties, NaN, infinities and signed zeros are rounded as ONNX says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tilewright.frontends.rewrites.rule import Operation

Array = np.ndarray[Any, Any]

NARROW_TYPES = frozenset(
    getattr(TensorProto, name)
    for name in (
        *("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"),
        *("FLOAT4E2M1", "INT4", "UINT4", "INT2", "UINT2"),
    )
)
_BITS: Mapping[int, int] = {
    TensorProto.FLOAT4E2M1: 4,
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
    TensorProto.INT2: 2,
    TensorProto.UINT2: 2,
}
INTEGERS_IN_CODES: Mapping[int, tuple[int, int]] = {
    TensorProto.INT4: (-8, 7),
    TensorProto.UINT4: (0, 15),
    TensorProto.INT2: (-2, 1),
    TensorProto.UINT2: (0, 3),
}
"""The least and greatest value of each integer type."""


def bits_of(kind: int) -> int:
    return _BITS.get(kind, 8)


def values_of(kind: int) -> Array:
    """Returns the value of each code, in f64."""
    codes = np.arange(1 << bits_of(kind), dtype=np.uint8)
    return codes.view(helper.tensor_dtype_to_np_dtype(kind)).astype(np.float64)


def decoded(operation: Operation, code: str, kind: int) -> str:
    """Makes the values of codes, in f32."""
    table = operation.constant(values_of(kind).astype(np.float32))
    return operation.make("Gather", table, operation.cast(code, TensorProto.INT32), axis=0)


def encoded_integers(operation: Operation, numbers: str, kind: int) -> str:
    """Makes the codes of integers in i32, which wrap around."""
    size = operation.constant(np.int32(1 << bits_of(kind)))
    return operation.cast(operation.make("Mod", numbers, size), TensorProto.UINT8)


def encoded_floats(
    operation: Operation, value: str, kind: int, *, wide: int, saturate: bool, round_mode: str = "up"
) -> str:
    """Makes the codes of floats, which are of the type `wide`: f32 or f64."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(wide))
    if kind == TensorProto.FLOAT8E8M0:
        return _encoded_exponents(operation, value, dtype, saturate=saturate, round_mode=round_mode)
    narrow = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    positive = _positive_values(kind)
    bounds = _bounds(positive, dtype)
    codes = list(range(positive.size))
    with np.errstate(invalid="ignore", over="ignore"):
        beyond, nan = np.array([np.inf, np.nan]).astype(narrow).view(np.uint8)
    if not saturate:
        bounds = np.append(bounds, _bound_of_overflow(positive, dtype))
        codes.append(int(beyond))
    count = _count_below(operation, operation.make("Abs", value), bounds, dtype)
    zero = operation.number(0, dtype)
    is_negative = operation.make(
        "Or",
        operation.make("Less", value, zero),
        operation.make("Less", operation.make("Reciprocal", value), zero),  # that of -0 is -inf
    )
    sign = 1 << (bits_of(kind) - 1)
    has_negative_zero = not np.isnan(values_of(kind)[sign])
    negative = [
        code if code >= sign or (code == 0 and not has_negative_zero) else code | sign for code in codes
    ]
    table = operation.constant(np.array([*codes, *negative], np.int32))
    shift = operation.make(
        "Mul", operation.cast(is_negative, TensorProto.INT32), operation.constant(np.int32(len(codes)))
    )
    code = operation.make("Gather", table, operation.make("Add", count, shift), axis=0)
    code = operation.make("Where", operation.make("IsNaN", value), operation.constant(np.int32(nan)), code)
    return operation.cast(code, TensorProto.UINT8)


def _positive_values(kind: int) -> Array:
    """Returns the finite values from zero on, in ascending order; their codes count from zero."""
    values = values_of(kind)[: 1 << (bits_of(kind) - 1)]
    return values[np.isfinite(values)]


def _bounds(values: Array, dtype: np.dtype[Any]) -> Array:
    """Returns, for each value but the last, the greatest number of `dtype` that is rounded to it or a lesser one."""
    middles = ((values[:-1] + values[1:]) / 2).astype(dtype)
    is_even = np.arange(middles.size) % 2 == 0  # a tie stays at an even code
    return np.where(is_even, middles, np.nextafter(middles, dtype.type(-np.inf)))


def _bound_of_overflow(values: Array, dtype: np.dtype[Any]) -> Array:
    """Returns the greatest number that is rounded to the last value, as if the values went on."""
    step = values[-1] - values[-2]
    return np.asarray(_bounds(np.array([*values, values[-1] + step]), dtype)[-1])


def _count_below(operation: Operation, value: str, bounds: Array, dtype: np.dtype[Any]) -> str:
    """Makes the number of bounds that are less than a value, in i32."""
    last = operation.ints(-1)
    wide = operation.make("Unsqueeze", value, last)
    is_above = operation.make("Greater", wide, operation.constant(bounds.astype(dtype)))
    return operation.make("ReduceSum", operation.cast(is_above, TensorProto.INT32), last, keepdims=0)


def _encoded_exponents(
    operation: Operation, value: str, dtype: np.dtype[Any], *, saturate: bool, round_mode: str
) -> str:
    """Makes exponents, which have no sign: code c is 2^(c - 127), and 255 is NaN, also for infinities."""
    powers = np.ldexp(1.0, np.arange(-127, 129))  # the last one is a step beyond the last value
    if round_mode == "up":
        bounds = np.concatenate([[0.0], powers[1:-1]])
    else:
        first = powers[1:] if round_mode == "down" else np.concatenate([powers[1:2], 1.5 * powers[1:-1]])
        with np.errstate(over="ignore"):
            bounds = np.nextafter(first[:255].astype(dtype), dtype.type(-np.inf))
    bounds = np.where(np.isinf(bounds), np.finfo(dtype).max, bounds)[: 254 if saturate else 255]
    magnitude = operation.make("Abs", value)
    code = _count_below(operation, magnitude, bounds, dtype)
    is_special = operation.make("Or", operation.make("IsNaN", value), operation.make("IsInf", value))
    code = operation.make("Where", is_special, operation.constant(np.int32(255)), code)
    return operation.cast(code, TensorProto.UINT8)
