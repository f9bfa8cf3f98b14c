"""Tanh (opsets 1 to 13) of f64, for which IREE's CPU back end calls a function that no library provides.

tanh x = sign x (1 - e) / (1 + e) with e = exp(-2|x|). Near zero, where the numerator cancels, it is a polynomial:
x - x³/3 + 2x⁵/15 - 17x⁷/315 + 62x⁹/2835, whose next term is below 2⁻⁵³ x for |x| < 0.04.
"""

from __future__ import annotations

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule

_SERIES = (62 / 2835, -17 / 315, 2 / 15, -1 / 3, 1.0)
_NEAR_ZERO = 0.04


def _by_exponentials(operation: Operation) -> bool:
    if operation.kind(0) != TensorProto.DOUBLE:
        return False
    x, dtype = operation.inputs[0], operation.dtype(0)

    def number(value: float) -> str:
        return operation.number(value, dtype)

    size = operation.make("Abs", x)
    power = operation.make("Exp", operation.make("Mul", size, number(-2)))
    far = operation.make(
        "Div", operation.make("Sub", number(1), power), operation.make("Add", number(1), power)
    )
    far = operation.make("Where", operation.make("Less", x, number(0)), operation.make("Neg", far), far)
    square = operation.make("Mul", x, x)
    series = number(_SERIES[0])
    for coefficient in _SERIES[1:]:
        series = operation.make("Add", operation.make("Mul", series, square), number(coefficient))
    near = operation.make("Mul", series, x)
    return operation.finish("Where", operation.make("Less", size, number(_NEAR_ZERO)), near, far)


RULES = [
    Rule(
        op="Tanh",
        rewrite=_by_exponentials,
        forms="f64",
        why="IREE's CPU back end has no such function",
    )
]
