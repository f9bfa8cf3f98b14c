"""Pow of integers, by squaring: one factor for each bit of the exponent that is set; and of f64, by magnitudes.

Products that overflow wrap around, as those of Mul do. A negative exponent gives the fraction cut off: 0, except for
bases of 1 and -1, for which only the lowest bit of the exponent counts.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule

_INTEGERS = (TensorProto.INT32, TensorProto.INT64)
_BITS = 6
"""Bits of an exponent that count: every other base than -1, 0 and 1 overflows i64 by its 64th power."""


def _spell_out(operation: Operation) -> bool:
    kind = operation.kind(0)
    if kind == TensorProto.DOUBLE or (kind in _INTEGERS and operation.is_float(1)):
        x, exponent = (operation.cast(name, TensorProto.DOUBLE) for name in operation.inputs)
        power = _power_of_magnitude(operation, x, exponent)
        if kind in _INTEGERS:  # a whole power that is a rounding error too small would be cut off
            is_whole = operation.make("Equal", operation.make("Floor", exponent), exponent)
            power = operation.make("Where", is_whole, operation.make("Round", power), power)
        return operation.finish("Cast", power, to=kind)
    return kind in _INTEGERS and _square(operation)


def _square(operation: Operation) -> bool:
    base = operation.inputs[0]
    dtype = operation.dtype(0)
    known = operation.value(1)
    if known is not None and known.size == 1 and known.item() >= 0:
        return operation.give(_known_power(operation, base, int(known.item())))
    exponent = operation.cast(operation.inputs[1], TensorProto.INT64)
    zero, one = operation.number(0, dtype), operation.number(1, dtype)
    number = {value: operation.constant(np.int64(value)) for value in (0, 1, 2, 62, 63)}
    is_negative = operation.make("Less", exponent, number[0])
    parity = operation.make("Mod", exponent, number[2])
    is_odd = operation.make("Equal", parity, number[1])
    large = operation.make("Where", is_odd, number[63], number[62])
    rest = operation.make("Where", operation.make("Greater", exponent, number[63]), large, exponent)
    rest = operation.make("Where", is_negative, parity, rest)
    result, power = one, base
    for bit in range(_BITS):
        is_set = operation.make("Equal", operation.make("Mod", rest, number[2]), number[1])
        result = operation.make("Mul", result, operation.make("Where", is_set, power, one))
        if bit + 1 < _BITS:
            power = operation.make("Mul", power, power)
            rest = operation.make("Div", rest, number[2])
    is_unit = operation.make("Equal", operation.make("Abs", base), one)
    return operation.finish(
        "Where", operation.make("And", is_negative, operation.make("Not", is_unit)), zero, result
    )


def _known_power(operation: Operation, base: str, exponent: int) -> str:
    if exponent == 0:
        zero = operation.number(0, operation.dtype(0))
        return operation.make(
            "Add", operation.make("Mul", base, zero), operation.number(1, operation.dtype(0))
        )
    result, power = "", base
    while exponent:
        if exponent & 1:
            result = operation.make("Mul", result, power) if result else power
        exponent >>= 1
        if exponent:
            power = operation.make("Mul", power, power)
    return result


def _power_of_magnitude(operation: Operation, x: str, exponent: str) -> str:
    """Makes a power in f64, of all special values as C defines them, from one of a positive number."""
    make, number = (
        operation.make,
        {value: operation.constant(np.float64(value)) for value in (0, 0.5, 1, np.inf)},
    )
    nan = operation.constant(np.float64(np.nan))
    magnitude = make("Abs", x)
    is_zero = make("Equal", magnitude, number[0])
    of_zero = make("Where", make("Greater", exponent, number[0]), number[0], exponent)  # NaN stays
    of_zero = make("Where", make("Less", exponent, number[0]), number[np.inf], of_zero)
    power = make(
        "Where", is_zero, of_zero, make("Pow", make("Where", is_zero, number[1], magnitude), exponent)
    )
    half = make("Mul", exponent, number[0.5])
    is_whole = make("Equal", make("Floor", exponent), exponent)
    is_odd = make("And", is_whole, make("Not", make("Equal", make("Floor", half), half)))
    # The reciprocal tells -0 from 0.
    is_negative = make("Less", make("Where", is_zero, make("Reciprocal", x), x), number[0])
    signed = make("Where", make("And", is_negative, is_odd), make("Neg", power), power)
    is_finite = make("Less", magnitude, number[np.inf])
    is_root = make("And", make("And", make("Less", x, number[0]), is_finite), make("Not", is_whole))
    result = make("Where", is_root, nan, signed)
    is_endless = make("Equal", make("Abs", exponent), number[np.inf])
    is_unit = make("And", make("Equal", magnitude, number[1]), is_endless)
    is_one = make("Or", make("Equal", exponent, number[0]), make("Equal", x, number[1]))
    return make("Where", make("Or", is_unit, is_one), number[1], result)


RULES = (
    Rule(
        "Pow",
        _spell_out,
        "IREE computes integers in floats, and every power of a negative base wrongly",
        forms="integers and f64",
    ),
)
