"""Steps of random graphs with reductions and ops built on them. `elementwise` says what a step is."""

from __future__ import annotations

import math

from fuzz.builder import FLOATS, INTEGERS
from fuzz.elementwise import tame
from fuzz.pool import BOUNDS, Pool, Value, result

REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean")
SOFTMAXES = ("Softmax", "LogSoftmax")
SEARCHES = ("ArgMax", "ArgMin")
_LARGEST_FACTOR = 1.25


def reduce(pool: Pool, x: Value, op: str) -> Value | None:
    """Reduces over one or several axes."""
    rank = len(x.shape)
    axes = sorted(int(axis) for axis in pool.rng.permutation(rank)[: int(pool.rng.integers(1, rank + 1))])
    keep = len(axes) == rank or pool.chance(0.5)
    count = math.prod(x.shape[axis] for axis in axes)
    factor = 1.0 if x.dtype in INTEGERS else _LARGEST_FACTOR
    bounds = {"ReduceSum": x.bound * count, "ReduceProd": factor ** min(count, 99)}
    bound = bounds.get(op, x.bound)
    if bound > BOUNDS[x.dtype] * (4 if op == "ReduceSum" and x.dtype == "f32" else 1):
        return None
    if op == "ReduceProd":
        x = _factors(pool, x)
    exact = x.exact and (op in ("ReduceMax", "ReduceMin") or x.dtype in INTEGERS)
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    shape = kept if keep else [size for axis, size in enumerate(x.shape) if axis not in axes]
    signed = pool.pick(axes) if len(axes) == 1 and pool.chance(0.3) else None
    spelled = axes if signed is None else [signed - rank]
    y = pool.consume(x, op, pool.m.ints(spelled), keepdims=int(keep))
    return result(y.name, shape, x.dtype, bound, exact=exact)


def _factors(pool: Pool, x: Value) -> Value:
    """Returns factors whose products neither overflow nor vanish: between 0.75 and 1.25, or between -1 and 1."""
    if x.dtype not in FLOATS:
        y = pool.consume(x, "Sign")
        return result(y.name, y.shape, y.dtype, 1.0, exact=x.exact)
    y = pool.consume(x, "Tanh")
    small = pool.m.op("Mul", y.name, pool.m.scalar(0.25, x.dtype))
    name = pool.m.op("Add", small, pool.m.scalar(1.0, x.dtype))
    return result(name, x.shape, x.dtype, _LARGEST_FACTOR, exact=False)


def softmax(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies softmax along one axis. An error of the operand becomes a relative error of the result, so the operand
    is tamed."""
    operand = tame(pool, x)
    axis = int(pool.rng.integers(len(x.shape)))
    y = pool.consume(operand, op, axis=axis)
    bound = 1.0 if op == "Softmax" else 2 * operand.bound + math.log(x.shape[axis])
    return result(y.name, y.shape, y.dtype, bound, exact=False)


def layer_norm(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies layer norm to graph inputs along several elements: these vary enough for a well-conditioned division."""
    axis = int(pool.rng.integers(len(x.shape)))
    if not x.is_input or x.shape[-1] < 5 or x.dtype not in FLOATS:
        return None
    gain = pool.constant(x.shape[axis:], x.dtype, low=0.5, high=1.5)
    bias = pool.constant(x.shape[axis:], x.dtype, low=-1.0, high=1.0)
    y = pool.consume(x, op, gain.name, bias.name, axis=axis, epsilon=1e-5)
    bound = 1.5 * math.sqrt(math.prod(x.shape[axis:])) + 1.0
    if bound > BOUNDS[x.dtype]:
        y, bound = result(pool.m.op("Tanh", y.name), y.shape, y.dtype, 1.0, exact=False), 1.0
    return result(y.name, y.shape, y.dtype, bound, exact=False)


def search(pool: Pool, x: Value, op: str) -> Value | None:
    """Finds the first largest or smallest element along one axis."""
    if not x.exact:
        return None
    axis, keep = int(pool.rng.integers(len(x.shape))), pool.chance(0.5) or len(x.shape) == 1
    shape = [*x.shape[:axis], *([1] if keep else []), *x.shape[axis + 1 :]]
    y = pool.consume(x, op, axis=axis, keepdims=int(keep))
    return result(y.name, shape, "i64", float(x.shape[axis]), exact=True)
