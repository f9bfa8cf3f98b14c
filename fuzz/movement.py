"""Steps of random graphs with data movement. `elementwise` says what a step is."""

from __future__ import annotations

import math

from fuzz.builder import Shape
from fuzz.pool import MAX_ELEMENTS, MAX_RANK, Pool, Value


def transpose(pool: Pool, x: Value, op: str) -> Value | None:
    """Transposes by a random permutation."""
    if len(x.shape) < 2:
        return None
    perm = [int(axis) for axis in pool.rng.permutation(len(x.shape))]
    return pool.moved(x, tuple(x.shape[axis] for axis in perm), op, perm=perm)


def reshape(pool: Pool, x: Value, op: str) -> Value | None:
    """Merges two neighbouring axes, or splits one by its smallest factor."""
    shape = list(x.shape)
    if len(shape) > 1 and pool.chance(0.6):
        axis = int(pool.rng.integers(len(shape) - 1))
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    else:
        composite = [(a, f) for a, size in enumerate(shape) for f in (2, 3, 5) if size % f == 0 and size > f]
        if not composite or len(shape) == MAX_RANK:
            return None
        axis, factor = pool.pick(composite)
        shape[axis : axis + 1] = [factor, shape[axis] // factor]
    spelled = list(shape)
    if pool.chance(0.5):
        spelled[int(pool.rng.integers(len(shape)))] = -1
    return pool.moved(x, tuple(shape), op, pool.m.ints(spelled))


def slice_axis(pool: Pool, x: Value, op: str) -> Value | None:
    """Slices along one axis, with a step."""
    axis = int(pool.rng.integers(len(x.shape)))
    size = x.shape[axis]
    if size < 3:
        return None
    start, stop = int(pool.rng.integers(0, size // 2)), size - int(pool.rng.integers(0, size // 3 + 1))
    step = pool.pick((1, 2, 3))
    count = len(range(start, stop, step))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    ends = [pool.m.ints([entry]) for entry in (start, stop, axis, step)]
    return pool.moved(x, shape, op, *ends)


def concat(pool: Pool, x: Value, op: str) -> Value | None:
    """Concatenates with an existing value or a constant."""
    axis = int(pool.rng.integers(len(x.shape)))
    others = [v for v in pool.values if v.dtype == x.dtype and _same_but(v.shape, x.shape, axis)]
    y = pool.pick(others) if others and pool.chance(0.7) else pool.constant(x.shape, x.dtype)
    shape = (*x.shape[:axis], x.shape[axis] + y.shape[axis], *x.shape[axis + 1 :])
    if math.prod(shape) > MAX_ELEMENTS:
        return None
    pool.use(x, y)
    name = pool.m.op(op, x.name, y.name, axis=axis - (len(shape) if pool.chance(0.3) else 0))
    return Value(name, shape, x.dtype, max(x.bound, y.bound), exact=x.exact and y.exact)


def pad(pool: Pool, x: Value, op: str) -> Value | None:
    """Pads with a constant."""
    before, after = pool.rng.integers(0, 3, (2, len(x.shape)))
    shape = tuple(int(size + b + a) for size, b, a in zip(x.shape, before, after, strict=True))
    if math.prod(shape) > MAX_ELEMENTS:
        return None
    fill = pool.m.scalar(pool.pick((-1, 0, 2)), x.dtype)
    y = pool.moved(x, shape, op, pool.m.ints([*map(int, before), *map(int, after)]), fill, mode="constant")
    return Value(y.name, y.shape, y.dtype, max(2.0, y.bound), y.exact)


def expand(pool: Pool, x: Value, op: str) -> Value | None:
    """Expands axes of one element, and adds new ones in front."""
    shape = tuple(pool.pick((2, 3, 5)) if size == 1 else size for size in x.shape)
    if len(shape) < MAX_RANK and pool.chance(0.5):
        shape = (pool.pick((2, 3)), *shape)
    if shape == x.shape or math.prod(shape) > MAX_ELEMENTS:
        return None
    return pool.moved(x, shape, op, pool.m.ints(shape))


def unsqueeze(pool: Pool, x: Value, op: str) -> Value | None:
    """Adds an axis."""
    if len(x.shape) == MAX_RANK:
        return None
    axis = int(pool.rng.integers(len(x.shape) + 1))
    return pool.moved(x, (*x.shape[:axis], 1, *x.shape[axis:]), op, pool.m.ints([axis]))


def squeeze(pool: Pool, x: Value, op: str) -> Value | None:
    """Removes an axis of one element."""
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    if not ones or len(x.shape) == 1:
        return None
    axis = pool.pick(ones)
    return pool.moved(x, (*x.shape[:axis], *x.shape[axis + 1 :]), op, pool.m.ints([axis]))


def _same_but(first: Shape, second: Shape, axis: int) -> bool:
    return len(first) == len(second) and all(
        a == b for i, (a, b) in enumerate(zip(first, second, strict=True)) if i != axis
    )
