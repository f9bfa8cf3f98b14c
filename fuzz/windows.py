"""Random graphs of ops that read at the edges: pads, windows, slices, concats, masks, and reductions of them.

Sizes are drawn from all up to 40, so that rows end at every lane of a vector: instruction sets differ most in the code
for the ends of rows and for positions outside a tensor. `graphs` makes random graphs of all operators.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import ModelProto

from fuzz import elementwise, movement, reducing
from fuzz.builder import FLOATS, Shape
from fuzz.graphs import Family, finish, grow
from fuzz.pool import MAX_ELEMENTS, MAX_RANK, Pool, Value, result

_TYPES = ("f32", "f32", "f32", "f16", "f16", "bf16", "i8", "i32", "i64")
_FEW = (1, 2, 3, 5)
_LARGEST = 40
_MOST_NODES = 8
_MULTIPLES = (4, 8, 13, 16, 32)


class WindowPool(Pool):
    """A pool whose inputs are images and sequences: the last two axes may be long, those before them are short."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        super().__init__(name, rng)
        self.pads_maxima = self.chance(0.3)
        """True if MaxPool has pads. Such a graph has no Conv and no AveragePool: onnx's evaluator, which must judge
        those, fails on some pads of MaxPool."""

    def shape(self) -> Shape:
        rank = int(self.rng.integers(1, MAX_RANK + 1))
        long = min(rank, 2)
        while True:
            sizes = [
                *(self.pick(_FEW) for _ in range(rank - long)),
                *self.rng.integers(1, _LARGEST + 1, long),
            ]
            if math.prod(map(int, sizes)) <= MAX_ELEMENTS // 2:
                return tuple(map(int, sizes))


def pad(pool: Pool, x: Value, op: str) -> Value | None:
    """Pads the last one or two axes, or all: with a constant, perhaps to a multiple, or with the elements at the
    edge."""
    rank = len(x.shape)
    mode = pool.pick(("constant", "constant", "reflect", "edge") if rank > 2 else ("constant",))
    if mode != "constant":
        # Models pad the axes of images and sequences like this; IREE 3.13 refuses edges of other axes, or takes
        # minutes for them.
        padded = range(2, rank)
    elif pool.chance(0.3):
        padded = range(rank)
    else:
        padded = range(max(0, rank - int(pool.rng.integers(1, 3))), rank)
    before, after = [0] * rank, [0] * rank
    for axis in padded:
        size = x.shape[axis]
        # A reflection has at most the elements beside the edge.
        most = min(9, size - 1) if mode == "reflect" else 9
        if mode == "constant" and pool.chance(0.3):
            after[axis] = -size % pool.pick(_MULTIPLES)
        else:
            before[axis], after[axis] = (int(pool.rng.integers(0, most + 1)) for _ in range(2))
    shape = tuple(b + size + a for b, size, a in zip(before, x.shape, after, strict=True))
    if shape == x.shape or math.prod(shape) > MAX_ELEMENTS:
        return None
    fill = [pool.m.scalar(pool.pick((-1, 0, 0, 2)), x.dtype)] if mode == "constant" else []
    y = pool.moved(x, shape, op, pool.m.ints([*before, *after]), *fill, mode=mode)
    return Value(y.name, y.shape, y.dtype, max(2.0, y.bound), y.exact)


def slice_axes(pool: Pool, x: Value, op: str) -> Value | None:
    """Slices along every axis, from odd offsets and with steps."""
    starts, ends, steps = [], [], []
    for size in x.shape:
        start = int(pool.rng.integers(0, size // 2 + 1)) if size > 1 else 0
        starts.append(start)
        ends.append(max(start + 1, size - int(pool.rng.integers(0, size // 3 + 1))))
        steps.append(pool.pick((1, 1, 1, 2, 3)))
    shape = tuple(len(range(*part)) for part in zip(starts, ends, steps, strict=True))
    axes = list(range(len(shape)))
    return pool.moved(x, shape, op, *map(pool.m.ints, (starts, ends, axes, steps)))


def concat(pool: Pool, x: Value, op: str) -> Value | None:
    """Concatenates slices of a value and a constant of different lengths."""
    axis = int(pool.rng.integers(len(x.shape)))
    size = x.shape[axis]
    cut = int(pool.rng.integers(0, size))
    piece = pool.m.op("Slice", x.name, *(pool.m.ints([entry]) for entry in (cut, size, axis)))
    middle = (*x.shape[:axis], int(pool.rng.integers(1, 8)), *x.shape[axis + 1 :])
    constant = pool.constant(middle, x.dtype)
    parts = [piece, constant.name, x.name] if pool.chance(0.5) else [x.name, piece, constant.name]
    shape = (*x.shape[:axis], size - cut + middle[axis] + size, *x.shape[axis + 1 :])
    if math.prod(shape) > MAX_ELEMENTS:
        return None
    pool.use(x)
    return result(
        pool.m.op(op, *parts, axis=axis), shape, x.dtype, max(x.bound, constant.bound), exact=x.exact
    )


def convolution(pool: Pool, x: Value, op: str) -> Value | None:
    """Convolves along one or two axes, with strides, dilations, pads and groups; the weights preserve the bound."""
    window = window_of(pool, x, is_padded=True)
    if window is None or x.dtype not in FLOATS or _pads_maxima(pool):
        return None
    channels = x.shape[1]
    groups = channels if pool.chance(0.3) else 1
    features = groups * pool.pick((1, 2, 3))
    taps = (features, channels // groups, *window.kernel)
    limit = 1.0 / math.prod(taps[1:])
    weights = pool.constant(taps, x.dtype, low=-limit, high=limit)
    shape = (x.shape[0], features, *window.sizes)
    if math.prod(shape) > MAX_ELEMENTS:
        return None
    y = pool.consume(x, op, weights.name, group=groups, dilations=window.dilations, **window.attributes)
    return result(y.name, shape, x.dtype, x.bound, exact=False)


def pooling(pool: Pool, x: Value, op: str) -> Value | None:
    """Computes the maximum or the mean of each window."""
    pads_maxima = _pads_maxima(pool)
    if x.dtype not in FLOATS or (pads_maxima and op == "AveragePool"):
        return None
    window = window_of(pool, x, is_even=True, is_padded=pads_maxima or op == "AveragePool")
    if window is None:
        return None
    counted = {"count_include_pad": int(pool.chance(0.5))} if op == "AveragePool" else {}
    y = pool.consume(x, op, dilations=window.dilations, **window.attributes, **counted)
    shape = (*x.shape[:2], *window.sizes)
    return result(y.name, shape, x.dtype, x.bound, exact=x.exact and op == "MaxPool")


def _pads_maxima(pool: Pool) -> bool:
    return isinstance(pool, WindowPool) and pool.pads_maxima


class Window:
    """A window over the axes behind the first two."""

    def __init__(self, pool: Pool, axes: Shape, *, is_even: bool, is_padded: bool) -> None:
        self.kernel = [min(size, pool.pick((1, 2, 3, 5))) for size in axes]
        self.dilations = [
            pool.pick((1, 1, 2)) if size >= 2 * k else 1 for size, k in zip(axes, self.kernel, strict=True)
        ]
        strides = [pool.pick((1, 1, 2, 3)) for _ in axes]
        # The reference pads symmetrically, and supports no window of pads alone.
        most = [0 if not is_padded else k // 2 if is_even else k - 1 for k in self.kernel]
        before = [int(pool.rng.integers(0, pad + 1)) for pad in most]
        behind = before if is_even else [int(pool.rng.integers(0, pad + 1)) for pad in most]
        self.attributes = {"kernel_shape": self.kernel, "strides": strides, "pads": [*before, *behind]}
        reach = [d * (k - 1) + 1 for d, k in zip(self.dilations, self.kernel, strict=True)]
        around = [a + b for a, b in zip(before, behind, strict=True)]
        self.sizes = [
            (size + more - far) // stride + 1
            for size, more, far, stride in zip(axes, around, reach, strides, strict=True)
        ]


def window_of(pool: Pool, x: Value, *, is_padded: bool, is_even: bool = False) -> Window | None:
    if len(x.shape) not in (3, 4):
        return None
    window = Window(pool, x.shape[2:], is_even=is_even, is_padded=is_padded)
    return window if min(window.sizes) > 0 else None


def mask(pool: Pool, x: Value, op: str) -> Value | None:
    """Keeps a band, a triangle or a run of the last axis, and replaces everything else by a constant."""
    size = x.shape[-1]
    columns = np.arange(size)
    kind = pool.pick(("run", "triangle", "band"))
    first = int(pool.rng.integers(0, size))
    if kind == "run" or len(x.shape) < 2:
        keep = (columns >= first) & (columns < first + int(pool.rng.integers(1, size + 1)))
    else:
        distance = columns - np.arange(x.shape[-2])[:, None]
        keep = distance <= first if kind == "triangle" else abs(distance) <= first
    condition = pool.m.constant(keep)
    other = pool.m.scalar(pool.pick((-2, 0, 1)), x.dtype)
    pool.use(x)
    return result(pool.m.op(op, condition, x.name, other), x.shape, x.dtype, max(2.0, x.bound), exact=x.exact)


FAMILIES: tuple[Family, ...] = (
    Family(6, pad, ("Pad",)),
    Family(3, slice_axes, ("Slice",)),
    Family(3, concat, ("Concat",)),
    Family(4, convolution, ("Conv",)),
    Family(3, pooling, ("MaxPool", "AveragePool")),
    Family(3, mask, ("Where",)),
    Family(2, movement.transpose, ("Transpose",)),
    Family(1, movement.reshape, ("Reshape",)),
    Family(2, reducing.reduce, ("ReduceSum", "ReduceMax", "ReduceMean")),
    Family(1, reducing.softmax, ("Softmax",)),
    Family(2, elementwise.piecewise, ("Abs", "Neg", "Relu")),
    Family(2, elementwise.arithmetic, elementwise.ARITHMETIC),
    Family(1, elementwise.smooth, ("Tanh", "Sigmoid")),
)


def random_windows(seed: int) -> ModelProto:
    """Returns the random graph of pads, windows and masks for this seed: 2 to about 12 nodes."""
    pool = WindowPool(f"random_windows_{seed}", np.random.default_rng([seed, 3]))
    for _ in range(int(pool.rng.integers(1, 3))):
        pool.input(pool.pick(_TYPES))
    grow(pool, FAMILIES, int(pool.rng.integers(2, _MOST_NODES + 1)))
    return finish(pool)
