"""Steps of random graphs with matmuls, transposed convolutions and global pools. `elementwise` says what a step is.

Weights have a sum of magnitudes of at most 1 along K, so that a result has the bound of its operand.
"""

from __future__ import annotations

import math

from fuzz.builder import FLOATS
from fuzz.pool import BOUNDS, MAX_ELEMENTS, MAX_RANK, Pool, Value, result

EINSUMS = ("ij->ji", "ij->i", "ijk->ik", "ijk->kj", "ii->i", "ij,jk->ik", "bij,jk->bik", "ij,kj->ki")


def matmul(pool: Pool, x: Value, op: str) -> Value | None:
    """Multiplies by a constant, from the right or from the left, perhaps one with a batch of its own."""
    k = x.shape[-1]
    if len(x.shape) > 1 and pool.chance(0.3):
        rows = pool.pick((1, 2, 3, 8))
        weights = _weights(pool, (rows, x.shape[-2]), x.dtype, x.shape[-2])
        shape, terms, operands = (*x.shape[:-2], rows, k), x.shape[-2], (weights.name, x.name)
    else:
        columns = pool.pick((1, 2, 3, 5, 8, 17))
        batch = () if len(x.shape) < 3 or pool.chance(0.6) else x.shape[:-2]
        weights = _weights(pool, (*batch, k, columns), x.dtype, k)
        shape, terms, operands = (*x.shape[:-1], columns), k, (x.name, weights.name)
    is_float = x.dtype in FLOATS
    bound = x.bound if is_float else x.bound * weights.bound * terms
    y = result(pool.m.op(op, *operands), shape, x.dtype, bound, exact=x.exact and not is_float)
    return _checked(pool, x, y)


def gemm(pool: Pool, x: Value, op: str) -> Value | None:
    """Multiplies matrices, transposed or not, and adds a vector or a matrix."""
    if len(x.shape) != 2:
        return None
    trans_a, trans_b = int(pool.chance(0.4)), int(pool.chance(0.5))
    rows, k = x.shape[::-1] if trans_a else x.shape
    columns = pool.pick((1, 2, 5, 8))
    weights = _weights(pool, (columns, k) if trans_b else (k, columns), x.dtype, k)
    if x.dtype not in FLOATS:
        return None
    added = [pool.constant(pool.pick([(columns,), (rows, 1), (rows, columns), ()]), x.dtype).name]
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": pool.pick((1.0, 0.5)), "beta": 0.5}
    name = pool.m.op(op, x.name, weights.name, *added[: pool.pick((0, 1, 1))], **attributes)
    return _checked(pool, x, result(name, (rows, columns), x.dtype, x.bound + 1.5, exact=False))


def _weights(pool: Pool, shape: tuple[int, ...], dtype: str, k: int) -> Value:
    if dtype not in FLOATS:
        return pool.constant(shape, dtype, low=-2, high=2)
    return pool.constant(shape, dtype, low=-1.0 / max(1, k), high=1.0 / max(1, k))


def _checked(pool: Pool, x: Value, y: Value) -> Value | None:
    """Returns the result if it is within the limits; its node stays unused otherwise, and `build` drops it."""
    if y.bound > BOUNDS[x.dtype] or math.prod(y.shape) > MAX_ELEMENTS:
        return None
    pool.use(x)
    return y


def product(pool: Pool, x: Value, op: str) -> Value | None:
    """Multiplies a value by its own transpose, as attention does."""
    if len(x.shape) < 2 or x.dtype not in FLOATS:
        return None
    rank, k = len(x.shape), x.shape[-1]
    turned = pool.m.op("Transpose", x.name, perm=[*range(rank - 2), rank - 1, rank - 2])
    scaled = pool.m.op("Mul", x.name, pool.m.scalar(1.0 / max(1, k), x.dtype))
    shape = (*x.shape[:-1], x.shape[-2])
    y = result(pool.m.op(op, scaled, turned), shape, x.dtype, x.bound**2, exact=False)
    return _checked(pool, x, y)


def einsum(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies an einsum of one or two operands."""
    equation = pool.pick(EINSUMS)
    left, _, after = equation.partition("->")
    terms = left.split(",")
    if len(terms[0]) != len(x.shape) or x.dtype not in FLOATS:
        return None
    sizes = dict(zip(terms[0], x.shape, strict=True))
    if len(set(terms[0])) < len(terms[0]) and len(set(x.shape)) > 1:
        return None
    operands = [x.name]
    for term in terms[1:]:
        for letter in term:
            sizes.setdefault(letter, pool.pick((2, 3, 5)))
        operands.append(pool.constant(tuple(sizes[letter] for letter in term), x.dtype, low=-1, high=1).name)
    terms_summed = math.prod(size for letter, size in sizes.items() if letter not in after)
    shape = tuple(sizes[letter] for letter in after)
    name = pool.m.op(op, *operands, equation=equation)
    y = result(name, shape, x.dtype, x.bound * terms_summed, exact=False)
    return _checked(pool, x, y)


def transposed_convolution(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies a transposed convolution with strides, dilations, groups and output padding."""
    if len(x.shape) not in (3, 4) or x.dtype not in FLOATS:
        return None
    axes = x.shape[2:]
    group = x.shape[1] if pool.chance(0.3) else 1
    features = pool.pick((1, 2, 3))
    kernel = [pool.pick((1, 2, 3)) for _ in axes]
    strides = [pool.pick((1, 2, 3)) for _ in axes]
    dilations = [pool.pick((1, 1, 2)) for _ in axes]
    extra = [int(pool.rng.integers(0, max(s, d))) for s, d in zip(strides, dilations, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    pads = [int(pool.rng.integers(0, k)) for k in (*kernel, *kernel)]
    count = len(axes)
    sizes = [
        s * (n - 1) + e + r - pads[i] - pads[i + count]
        for i, (s, n, e, r) in enumerate(zip(strides, axes, extra, reach, strict=True))
    ]
    shape = (x.shape[0], group * features, *sizes)
    if min(sizes) < 1 or math.prod(shape) > MAX_ELEMENTS:
        return None
    weights = _weights(
        pool, (x.shape[1], features, *kernel), x.dtype, x.shape[1] // group * math.prod(kernel)
    )
    attributes = {"strides": strides, "dilations": dilations, "pads": pads, "output_padding": extra}
    name = pool.m.op(op, x.name, weights.name, group=group, kernel_shape=kernel, **attributes)
    return _checked(pool, x, result(name, shape, x.dtype, x.bound, exact=False))


def global_pool(pool: Pool, x: Value, op: str) -> Value | None:
    """Reduces all axes behind the channels."""
    if not 3 <= len(x.shape) <= MAX_RANK or x.dtype not in FLOATS:
        return None
    y = pool.consume(x, op)
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:]))
    return result(y.name, shape, x.dtype, x.bound, exact=x.exact and op == "GlobalMaxPool")
