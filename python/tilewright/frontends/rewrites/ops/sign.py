"""Sign of floats, by comparisons with a zero of the same type; the sign of NaN is NaN."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


def _choose_sign(operation: Operation) -> bool:
    if not operation.is_float(0):
        return False
    x = operation.inputs[0]
    zero, one, minus_one = (operation.number(value, operation.dtype(0)) for value in (0, 1, -1))
    not_signed = operation.make("Where", operation.make("IsNaN", x), x, zero)
    not_above = operation.make("Where", operation.make("Less", x, zero), minus_one, not_signed)
    return operation.finish("Where", operation.make("Greater", x, zero), one, not_above)


RULES = (
    Rule(
        "Sign",
        _choose_sign,
        "IREE compares with an integer, so that the result depends on the contents of memory, and loses NaN",
        forms="floats",
    ),
)
