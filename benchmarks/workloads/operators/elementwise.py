"""Elementwise operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.workloads.operators.model import ELEMENTS, OpModel, types_of


def _any(m: OpModel) -> str:
    return m.input(3, 37)


def _unit(m: OpModel) -> str:
    """Returns numbers between -0.9 and 0.9."""
    return m.op("Mul", m.op("Tanh", _any(m)), m.number(0.9))


def _positive(m: OpModel) -> str:
    return m.op("Add", m.op("Abs", _any(m)), m.number(0.5))


def _above_one(m: OpModel) -> str:
    return m.op("Add", m.op("Abs", _any(m)), m.number(1.5))


def _not_numbers(m: OpModel) -> str:
    """Returns numbers of which about a half are NaN."""
    return m.op("Log", _any(m))


def _infinities(m: OpModel) -> str:
    """Returns numbers of which many are infinite."""
    return m.op("Div", _any(m), m.op("Floor", m.op("Abs", _any(m))))


_UNARY: Mapping[str, Callable[[OpModel], str]] = {
    **dict.fromkeys(
        (
            *(
                "Abs",
                "Asinh",
                "Atan",
                "BitwiseNot",
                "Ceil",
                "Celu",
                "Cos",
                "Cosh",
                "Dropout",
                "Elu",
                "Erf",
                "Exp",
            ),
            *(
                "Floor",
                "Gelu",
                "HardSigmoid",
                "HardSwish",
                "Identity",
                "LeakyRelu",
                "Mish",
                "Neg",
                "Not",
                "Relu",
            ),
            *("Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Tanh"),
            "ThresholdedRelu",
        ),
        _any,
    ),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "Tan"), _unit),
    **dict.fromkeys(("Log", "Reciprocal", "Sqrt"), _positive),
    "Acosh": _above_one,
    "IsInf": _infinities,
    "IsNaN": _not_numbers,
}


def unary(m: OpModel) -> None:
    """Adds operators of one operand."""
    for op, operand in _UNARY.items():
        if m.takes(op):
            m.check(op, operand(m))
    if m.takes("Gelu"):
        m.check("Gelu", _any(m), approximate="tanh")
        m.check("IsInf", _infinities(m), detect_negative=0)
        m.check("LeakyRelu", _any(m), alpha=0.2)
        m.check("Elu", _any(m), alpha=1.5)
        m.check("Shrink", _any(m), lambd=0.75, bias=0.25)


def binary(m: OpModel) -> None:
    """Adds operators of two or more operands, one of which is broadcast."""
    x, y, row = m.input(3, 37), m.input(3, 37, name="y"), m.input(37, name="y")
    for op in ("Add", "Sub", "Mul", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        m.check(op, x, y)
        m.check(op, x, row)
    for op in ("Max", "Min", "Sum", "Mean"):
        m.check(op, x, row, y)
    _compare(m, x, y)
    _divide(m, x, row)
    for direction in ("LEFT", "RIGHT"):
        m.check("BitShift", x, row, direction=direction)
    mask = m.input(3, 1, dtype="bool", name="condition")
    m.check("Where", mask, x, row)
    m.check("PRelu", x, row)
    if m.takes("Clip"):
        m.check("Clip", x, m.number(1), m.number(3))
        m.check("Clip", x, m.number(2))


def _compare(m: OpModel, x: str, y: str) -> None:
    if m.is_float:
        # Whole numbers are often equal.
        x, y = m.op("Floor", x), m.op("Floor", y)
    for op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        m.check(op, x, y)


def _divide(m: OpModel, x: str, row: str) -> None:
    if m.dtype == "bool":
        return
    least = m.number(0.5 if m.is_float else 1)
    divisor = m.op("Add", row if m.dtype == "u8" else m.op("Abs", row), least)
    m.check("Div", x, divisor)
    if m.is_float:
        # The remainder jumps, so that its operands must be exact.
        m.check("Mod", x, m.number(1.5), fmod=1)
        m.check("Pow", m.op("Add", m.op("Abs", x), least), row)
    else:
        m.check("Mod", x, divisor)
        m.check("Mod", x, divisor, fmod=1)
    for exponent in (2, 3):
        m.check("Pow", x, m.number(exponent))


def cast(m: OpModel) -> None:
    """Adds casts to every other type."""
    x = m.input(5, 19)
    for target, element in ELEMENTS.items():
        if target == m.dtype or target not in types_of("Cast", m.opset):
            continue
        # Unsigned types hold no negative numbers.
        operand = m.op("Abs", x) if target == "u8" and m.dtype != "bool" else x
        m.check("Cast", operand, to=element)
        m.check("CastLike", operand, m.number(1, target))
