"""Steps of random graphs with ops that move elements by indices, and with Resize. `elementwise` says what a step is."""

from __future__ import annotations

import math

import numpy as np

from fuzz.builder import FLOATS, INTEGERS, Shape
from fuzz.pool import BOUNDS, MAX_ELEMENTS, MAX_RANK, Pool, Value, result


def _axis(pool: Pool, x: Value) -> int:
    return int(pool.rng.integers(len(x.shape)))


def _indices(pool: Pool, shape: Shape, size: int) -> str:
    """Returns constant indices into an axis, perhaps from its end."""
    low = -size if pool.chance(0.4) else 0
    return pool.m.constant(pool.rng.integers(low, size, shape).astype(np.int64))


def gather(pool: Pool, x: Value, op: str) -> Value | None:
    """Gathers along an axis."""
    axis = _axis(pool, x)
    indices: Shape = pool.pick([(), (1,), (3,), (2, 2)])
    shape = (*x.shape[:axis], *indices, *x.shape[axis + 1 :])
    if not 1 <= len(shape) <= MAX_RANK or math.prod(shape) > MAX_ELEMENTS:
        return None
    return pool.moved(x, shape, op, _indices(pool, indices, x.shape[axis]), axis=axis)


def gather_elements(pool: Pool, x: Value, op: str) -> Value | None:
    """Gathers single elements along an axis."""
    axis = _axis(pool, x)
    shape = tuple(
        pool.pick((1, 2, 5)) if at == axis else int(pool.rng.integers(1, size + 1))
        for at, size in enumerate(x.shape)
    )
    return pool.moved(x, shape, op, _indices(pool, shape, x.shape[axis]), axis=axis)


def gather_nd(pool: Pool, x: Value, op: str) -> Value | None:
    """Gathers slices by vectors of indices."""
    depth = int(pool.rng.integers(1, len(x.shape) + 1))
    points = pool.pick((1, 3, 4))
    columns = [pool.rng.integers(0, size, (points, 1)) for size in x.shape[:depth]]
    indices = pool.m.constant(np.concatenate(columns, axis=1).astype(np.int64))
    return pool.moved(x, (points, *x.shape[depth:]), op, indices)


def _reduction(pool: Pool, x: Value) -> str:
    if x.dtype == "bool":
        return "none"
    return pool.pick(("none", "add", "mul", "max", "min"))


def _scattered(pool: Pool, x: Value, name: str, reduction: str, times: int) -> Value | None:
    """Returns the result of a scatter of updates within ±2, each at most `times` times into an element."""
    bound = 1.0 if x.dtype == "bool" else max(2.0, x.bound)
    if reduction == "add":
        bound = x.bound + 2.0 * times
    elif reduction == "mul":
        bound = x.bound * 2.0**times
    if bound > BOUNDS[x.dtype]:
        return None
    exact = x.exact and (x.dtype not in FLOATS or reduction not in ("add", "mul"))
    pool.use(x)
    return result(name, x.shape, x.dtype, bound, exact=exact)


def scatter_elements(pool: Pool, x: Value, op: str) -> Value | None:
    """Scatters along an axis; with a reduction, several updates may meet."""
    axis, reduction = _axis(pool, x), _reduction(pool, x)
    size = x.shape[axis]
    count = min(size, pool.pick((1, 2, 3)))
    shape = tuple(count if at == axis else int(pool.rng.integers(1, s + 1)) for at, s in enumerate(x.shape))
    if reduction == "none":
        order = pool.rng.permutation(size)[:count].reshape(
            [-1 if at == axis else 1 for at in range(len(shape))]
        )
        indices = pool.m.constant(np.broadcast_to(order, shape).astype(np.int64))
    else:
        indices = _indices(pool, shape, size)
    updates = pool.constant(shape, x.dtype, low=-2, high=2)
    name = pool.m.op(op, x.name, indices, updates.name, axis=axis, reduction=reduction)
    return _scattered(pool, x, name, reduction, count)


def scatter_nd(pool: Pool, x: Value, op: str) -> Value | None:
    """Scatters slices; with a reduction, several updates may meet."""
    depth, reduction = int(pool.rng.integers(1, len(x.shape) + 1)), _reduction(pool, x)
    outer = x.shape[:depth]
    points = min(math.prod(outer), pool.pick((1, 2, 3)))
    flat = pool.rng.choice(math.prod(outer), points, replace=reduction != "none")
    indices = np.stack(np.unravel_index(flat, outer), axis=-1).astype(np.int64)
    updates = pool.constant((points, *x.shape[depth:]), x.dtype, low=-2, high=2)
    name = pool.m.op(op, x.name, pool.m.constant(indices), updates.name, reduction=reduction)
    return _scattered(pool, x, name, reduction, points)


def top_k(pool: Pool, x: Value, op: str) -> Value | None:
    """Returns the largest or smallest elements, or their positions in data without ties."""
    if not x.exact:
        return None
    axis = _axis(pool, x)
    count = int(pool.rng.integers(1, x.shape[axis] + 1))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    largest = int(pool.chance(0.6))
    values, positions = pool.m.ops(op, 2, x.name, pool.m.ints([count]), axis=axis, largest=largest, sorted=1)
    pool.use(x)
    if x.dtype in INTEGERS and pool.chance(0.5):
        return result(positions, shape, "i64", float(x.shape[axis]), exact=True)
    return result(values, shape, x.dtype, x.bound, exact=True)


def cumulate(pool: Pool, x: Value, op: str) -> Value | None:
    """Sums along an axis, in either direction, with or without the element itself."""
    axis = _axis(pool, x)
    bound = x.bound * x.shape[axis]
    if bound > BOUNDS[x.dtype]:
        return None
    attributes = {"exclusive": int(pool.chance(0.4)), "reverse": int(pool.chance(0.4))}
    y = pool.consume(x, op, pool.m.scalar(axis, "i64"), **attributes)
    return result(y.name, x.shape, x.dtype, bound, exact=x.exact and x.dtype in INTEGERS)


def triangle(pool: Pool, x: Value, op: str) -> Value | None:
    """Keeps the upper or lower triangle of the last two axes."""
    if len(x.shape) < 2:
        return None
    diagonal = pool.m.scalar(pool.pick((-2, -1, 0, 1, 3)), "i64")
    return pool.consume(x, op, diagonal, upper=int(pool.chance(0.5)))


def tile(pool: Pool, x: Value, op: str) -> Value | None:
    """Repeats along every axis."""
    repeats = [pool.pick((1, 1, 2, 3)) for _ in x.shape]
    shape = tuple(size * count for size, count in zip(x.shape, repeats, strict=True))
    return pool.moved(x, shape, op, pool.m.ints(repeats)) if math.prod(shape) <= MAX_ELEMENTS else None


def split(pool: Pool, x: Value, op: str) -> Value | None:
    """Splits along an axis, and returns one of the parts."""
    axis = _axis(pool, x)
    size = x.shape[axis]
    if size < 2:
        return None
    first = int(pool.rng.integers(1, size))
    parts = pool.m.ops(op, 2, x.name, pool.m.ints([first, size - first]), axis=axis)
    at = pool.pick((0, 1))
    pool.use(x)
    shape = (*x.shape[:axis], (first, size - first)[at], *x.shape[axis + 1 :])
    return result(parts[at], shape, x.dtype, x.bound, exact=x.exact)


def depth_to_space(pool: Pool, x: Value, op: str) -> Value | None:
    """Moves blocks of pixels to channels, or back."""
    if len(x.shape) != 4:
        return None
    n, c, h, w = x.shape
    block = pool.pick((2, 3))
    if op == "DepthToSpace" and c % block**2 == 0:
        mode = pool.pick(("DCR", "CRD"))
        return pool.moved(x, (n, c // block**2, h * block, w * block), op, blocksize=block, mode=mode)
    if op == "SpaceToDepth" and h % block == 0 and w % block == 0:
        return pool.moved(x, (n, c * block**2, h // block, w // block), op, blocksize=block)
    return None


def resize(pool: Pool, x: Value, op: str) -> Value | None:
    """Resizes images and sequences: nearest, linear or cubic, by sizes or by scales that are powers of two.

    Other scales would be rounded, and a position that falls between two elements could become the other one.
    """
    if len(x.shape) not in (3, 4) or x.dtype not in FLOATS:
        return None
    mode = pool.pick(("nearest", "linear", "cubic") if len(x.shape) == 4 else ("nearest", "linear"))
    if mode == "nearest" and not x.exact:
        return None
    # Lengths are whole numbers, because of others ONNX's reference takes the ratio and ONNX Runtime cuts them off.
    scales = [1.0, 1.0, *(pool.pick((1.0, 2.0, 4.0) if n % 2 else (0.5, 1.0, 2.0)) for n in x.shape[2:])]
    shape = tuple(int(size * scale) for size, scale in zip(x.shape, scales, strict=True))
    if min(shape) < 1 or math.prod(shape) > MAX_ELEMENTS:
        return None
    places = pool.pick(("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"))
    if mode == "nearest" and places == "align_corners":
        places = "asymmetric"
    attributes = {"mode": mode, "coordinate_transformation_mode": places}
    if mode == "nearest":
        attributes["nearest_mode"] = pool.pick(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))
    factors = pool.m.constant(np.array(scales, dtype=np.float32))
    y = pool.consume(x, op, "", factors, **attributes)
    bound = x.bound * (2.0 if mode == "cubic" else 1.0)
    if bound > BOUNDS[x.dtype]:
        y, bound = result(pool.m.op("Tanh", y.name), shape, x.dtype, 1.0, exact=False), 1.0
    return result(y.name, shape, x.dtype, bound, exact=x.exact and mode == "nearest")
