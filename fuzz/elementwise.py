"""Steps of random graphs with elementwise operators.

A step applies an operator to a value. It returns the result, or None if the operator does not fit the value: because
of its type or bound, or because the operator jumps and the value is not exact.
"""

from __future__ import annotations

import math

import numpy as np

from fuzz.builder import ELEMENT_TYPES, FLOATS, INTEGERS, types_of
from fuzz.pool import BOUNDS, INPUT_BOUND, Pool, Value, broadcasts, result

JUMPS = ("Floor", "Ceil", "Round", "Sign")
PIECEWISE = ("Abs", "Neg", "Relu", *JUMPS)
_BOUNDED = ("Tanh", "Sigmoid", "Erf", "Sin", "Cos", "HardSigmoid")
_GROWING = ("LeakyRelu", "Elu", "Softplus", "Gelu")
_SINGULAR = ("Log", "Sqrt", "Reciprocal")
SMOOTH = (*_BOUNDED, *_GROWING, *_SINGULAR, "Exp")
ARITHMETIC = ("Add", "Sub", "Mul", "Max", "Min")
GUARDED = ("Div", "Pow", "Mod")
COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
LOGICAL = ("And", "Or", "Xor")


def piecewise(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies a piecewise linear operator, which is exact if the operand is."""
    if op in JUMPS and not x.exact:
        return None
    y = pool.consume(x, op)
    return result(y.name, y.shape, y.dtype, max(1.0, math.ceil(y.bound)), exact=y.exact)


def invert(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies Not."""
    return pool.consume(x, op)


def smooth(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies a function whose result has a rounding error."""
    if op in _BOUNDED or op in _GROWING:
        y = pool.consume(x, op)
        bound = 1.0 if op in _BOUNDED else y.bound + 1.0
    elif op == "Exp":
        operand = tame(pool, x)
        bound = math.exp(operand.bound)
        y = pool.consume(operand, op)
    else:
        # The operand |x| + 0.5 is away from the singularity at 0.
        positive = pool.consume(x, "Abs")
        shifted = pool.m.op("Add", positive.name, pool.m.scalar(0.5, x.dtype))
        y = result(pool.m.op(op, shifted), x.shape, x.dtype, x.bound, exact=False)
        bound = max(2.0, x.bound)
    if bound > BOUNDS[x.dtype]:
        # The node exists already, so its result is tamed instead of refused.
        y, bound = result(pool.m.op("Tanh", y.name), x.shape, x.dtype, 1.0, exact=False), 1.0
    return result(y.name, y.shape, y.dtype, bound, exact=False)


def tame(pool: Pool, x: Value) -> Value:
    """Returns the value, or its Tanh if it is too large for an exponential."""
    if x.bound <= INPUT_BOUND:
        return x
    y = pool.consume(x, "Tanh")
    return result(y.name, y.shape, y.dtype, 1.0, exact=False)


def arithmetic(pool: Pool, x: Value, op: str) -> Value | None:
    """Combines two operands, one of which may broadcast."""
    y = pool.partner(x)
    bounds = {"Add": x.bound + y.bound, "Sub": x.bound + y.bound, "Mul": x.bound * y.bound}
    bound = bounds.get(op, max(x.bound, y.bound))
    if bound > BOUNDS[x.dtype]:
        return None
    pool.use(x, y)
    left, right = (y, x) if pool.chance(0.5) else (x, y)
    exact = x.exact and y.exact and (op in ("Max", "Min") or x.dtype in INTEGERS)
    name = pool.m.op(op, left.name, right.name)
    return result(name, np.broadcast_shapes(x.shape, y.shape), x.dtype, bound, exact=exact)


def guarded(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies an operator that is not defined for every right operand."""
    if op == "Pow":
        exponent = pool.pick((2, 3))
        bound = max(1.0, x.bound) ** exponent
        if bound > BOUNDS[x.dtype]:
            return None
        power = pool.consume(x, "Pow", pool.m.scalar(exponent, x.dtype))
        return result(power.name, x.shape, x.dtype, bound, exact=False)
    if op == "Mod" and not x.exact:
        return None
    if op == "Mod" or x.dtype in INTEGERS:
        divisor = pool.constant(x.shape[-1:], x.dtype, low=1, high=5)
        attributes = {"fmod": int(x.dtype in FLOATS)} if op == "Mod" else {}
        y = pool.consume(x, op, divisor.name, **attributes)
        return result(y.name, y.shape, y.dtype, max(5.0, y.bound), exact=y.exact)
    y = pool.partner(x)
    pool.use(x, y)
    divisor_name = pool.m.op("Add", pool.m.op("Abs", y.name), pool.m.scalar(1.0, x.dtype))
    shape = np.broadcast_shapes(x.shape, y.shape)
    return result(pool.m.op("Div", x.name, divisor_name), shape, x.dtype, x.bound, exact=False)


def compare(pool: Pool, x: Value, op: str) -> Value | None:
    """Compares exact values."""
    if not x.exact:
        return None
    y = pool.partner(x)
    if not y.exact:
        return None
    pool.use(x, y)
    return result(
        pool.m.op(op, x.name, y.name), np.broadcast_shapes(x.shape, y.shape), "bool", 1.0, exact=True
    )


def logical(pool: Pool, x: Value, op: str) -> Value | None:
    """Combines two boolean values."""
    y = pool.partner(x)
    pool.use(x, y)
    return result(
        pool.m.op(op, x.name, y.name), np.broadcast_shapes(x.shape, y.shape), "bool", 1.0, exact=True
    )


def select(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies Where."""
    conditions = [v for v in pool.values if v.dtype == "bool" and broadcasts(v.shape, x.shape)]
    condition = pool.pick(conditions) if conditions else pool.constant(x.shape, "bool")
    y = pool.partner(x)
    if not broadcasts(condition.shape, x.shape, y.shape):
        return None
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    pool.use(condition, x, y)
    name = pool.m.op(op, condition.name, x.name, y.name)
    return result(name, shape, x.dtype, max(x.bound, y.bound), exact=x.exact and y.exact)


def cast(pool: Pool, x: Value, op: str) -> Value | None:
    """Casts to another type that holds the value."""
    target = pool.pick([dtype for dtype in types_of("Cast") if dtype != x.dtype])
    if (target not in FLOATS and not x.exact) or x.bound > BOUNDS[target] > 1.0:
        return None
    # Narrowing rounds, but the float64 reference does not. Integers with a bound above 256 do not fit bf16.
    narrowing = (x.dtype in ("f32", "f16", "bf16") and target in ("f16", "bf16")) or (
        target == "bf16" and x.bound > 256
    )
    y = pool.consume(x, op, to=ELEMENT_TYPES[target])
    bound = 1.0 if target == "bool" else y.bound
    return result(y.name, y.shape, target, bound, exact=x.exact and not narrowing)


def clip(pool: Pool, x: Value, op: str) -> Value | None:
    """Clips between two constants."""
    y = pool.consume(x, op, pool.m.scalar(-2, x.dtype), pool.m.scalar(3, x.dtype))
    return result(y.name, y.shape, y.dtype, min(y.bound, 3.0), exact=y.exact)
