"""Random chains of ops, each computed twice in ways that must agree: on batches apart, on transposed images, or on
channels in another order.

Both results are outputs. Our program must agree with float64 in both, and the float64 reference with itself, so that
an error which our program and the reference have in common shows, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from onnx import ModelProto

from fuzz.builder import NUMPY_TYPES, Array, ModelBuilder

T = TypeVar("T")

_TYPES = ("f32", "f32", "f32", "f16")
_Shape = tuple[int, int, int, int]
_SIZES = (2, 3, 4, 5, 6, 7, 9)


class _Images:
    """A graph in which every image has a twin: [batch, channels, height, width]."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 13])
        self.m = ModelBuilder(f"random_twins_{seed}")
        self.dtype = self.pick(*_TYPES)

    def pick(self, *options: T) -> T:
        return options[int(self.rng.integers(len(options)))]

    def weights(self, *shape: int) -> Array:
        """Returns weights that keep magnitudes: all but the first axis are summed over."""
        limit = 1.0 / max(1, int(np.prod(shape[1:])))
        return self.rng.uniform(-limit, limit, shape).astype(NUMPY_TYPES[self.dtype])

    def constant(self, array: Array) -> str:
        return self.m.constant(array)


@dataclass(frozen=True)
class _Op:
    """An op on images, and how it is applied to images whose height and width, or channels, changed places."""

    plain: Callable[[str], str]
    turned: Callable[[str], str]
    """Takes transposed images, and returns transposed ones."""
    permuted: Callable[[str, Array], str]
    """Takes images with permuted channels; returns images with the same permutation if `keeps_channels`."""
    shape: _Shape
    keeps_channels: bool = True


def _elementwise(g: _Images, shape: _Shape) -> _Op:
    op = g.pick("Relu", "Tanh", "Sigmoid", "Neg", "Abs")

    def apply(x: str) -> str:
        return g.m.op(op, x)

    return _Op(apply, apply, lambda x, order: apply(x), shape)


def _softmax(g: _Images, shape: _Shape) -> _Op:
    axis = g.pick(1, 2, 3)
    other = {1: 1, 2: 3, 3: 2}[axis]
    return _Op(
        lambda x: g.m.op("Softmax", x, axis=axis),
        lambda x: g.m.op("Softmax", x, axis=other),
        lambda x, order: g.m.op("Softmax", x, axis=axis),
        shape,
    )


def _normalized(g: _Images, shape: _Shape) -> _Op:
    """Adds a bias and multiplies by a gain of each channel."""
    gain, bias = (g.weights(shape[1], 1, 1) + 1 for _ in range(2))

    def apply(x: str, order: Array | None = None) -> str:
        some = slice(None) if order is None else order
        return g.m.op("Add", g.m.op("Mul", x, g.constant(gain[some])), g.constant(bias[some]))

    return _Op(apply, apply, apply, shape)


def _window(g: _Images, shape: _Shape) -> tuple[dict[str, list[int]], tuple[int, int]] | None:
    kernel = [min(size, g.pick(1, 2, 3)) for size in shape[2:]]
    strides = [g.pick(1, 1, 2) for _ in kernel]
    pads = [int(g.rng.integers(0, k)) // 2 for k in kernel]
    sizes = [(n + 2 * p - k) // s + 1 for n, p, k, s in zip(shape[2:], pads, kernel, strides, strict=True)]
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": [*pads, *pads]}
    return (attributes, (sizes[0], sizes[1])) if min(sizes) > 0 else None


def _turned_window(attributes: dict[str, list[int]]) -> dict[str, list[int]]:
    pads = attributes["pads"]
    return {
        "kernel_shape": attributes["kernel_shape"][::-1],
        "strides": attributes["strides"][::-1],
        "pads": [pads[1], pads[0], pads[3], pads[2]],
    }


def _pool(g: _Images, shape: _Shape) -> _Op | None:
    window = _window(g, shape)
    if window is None:
        return None
    attributes, sizes = window
    # onnx's evaluator fails on some pads of MaxPool.
    op = "AveragePool" if any(attributes["pads"]) else g.pick("AveragePool", "MaxPool")
    return _Op(
        lambda x: g.m.op(op, x, **attributes),
        lambda x: g.m.op(op, x, **_turned_window(attributes)),
        lambda x, order: g.m.op(op, x, **attributes),
        (*shape[:2], *sizes),
    )


def _convolution(g: _Images, shape: _Shape) -> _Op | None:
    window = _window(g, shape)
    if window is None:
        return None
    attributes, sizes = window
    features = g.pick(1, 2, 3, 5)
    weights = g.weights(features, shape[1], *attributes["kernel_shape"])
    return _Op(
        lambda x: g.m.op("Conv", x, g.constant(weights), **attributes),
        lambda x: g.m.op("Conv", x, g.constant(weights.swapaxes(2, 3)), **_turned_window(attributes)),
        lambda x, order: g.m.op("Conv", x, g.constant(weights[:, order]), **attributes),
        (shape[0], features, *sizes),
        keeps_channels=False,
    )


def _product(g: _Images, shape: _Shape) -> _Op:
    """Multiplies rows of images by a matrix; of transposed ones, columns by its transpose."""
    columns = g.pick(1, 2, 5, 8)
    weights = g.weights(columns, shape[3])
    return _Op(
        lambda x: g.m.op("MatMul", x, g.constant(weights.T.copy())),
        lambda x: g.m.op("MatMul", g.constant(weights), x),
        lambda x, order: g.m.op("MatMul", x, g.constant(weights.T.copy())),
        (*shape[:3], columns),
    )


_OPS = (_elementwise, _softmax, _normalized, _pool, _convolution, _convolution, _product, _product)


def random_twins(seed: int) -> ModelProto:
    """Returns the random chain of this seed, of 2 to 4 ops; each output has its twin behind it."""
    g = _Images(seed)
    shape = (g.pick(2, 3, 4), g.pick(1, 2, 3, 5), g.pick(*_SIZES), g.pick(*_SIZES))
    x = twin = g.m.input(shape, g.dtype)
    steps = 0
    wanted = g.pick(2, 3, 4)
    while steps < wanted:
        op = _OPS[int(g.rng.integers(len(_OPS)))](g, shape)
        if op is None:
            continue
        x, twin, shape, steps = op.plain(x), _changed(g, op, twin, shape), op.shape, steps + 1
    for name in (x, twin):
        g.m.output(name, shape, g.dtype)
    return g.m.build()


def _changed(g: _Images, op: _Op, x: str, shape: _Shape) -> str:
    """Applies an op in another way."""
    way = g.pick(0, 1, 2)
    if way == 0 and shape[0] > 1:
        first = g.pick(*range(1, shape[0]))
        parts = g.m.ops("Split", 2, x, g.m.ints([first, shape[0] - first]), axis=0)
        return g.m.op("Concat", *(op.plain(part) for part in parts), axis=0)
    if way == 1:
        turned = op.turned(g.m.op("Transpose", x, perm=[0, 1, 3, 2]))
        return g.m.op("Transpose", turned, perm=[0, 1, 3, 2])
    order = g.rng.permutation(shape[1])
    y = op.permuted(g.m.op("Gather", x, g.m.ints([int(at) for at in order]), axis=1), order)
    if not op.keeps_channels:
        return y
    return g.m.op("Gather", y, g.m.ints([int(at) for at in np.argsort(order)]), axis=1)
