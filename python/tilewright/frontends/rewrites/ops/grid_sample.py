"""GridSample as gathers of the elements around each position, and their weighted sum.

Positions outside are clamped or reflected first, as ONNX's reference does it, and then each element again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tilewright.frontends.rewrites.rule import Operation, Rule

_MOST_GATHERS = 16
"""Most elements that a sum may have: those of a cubic interpolation of an image, or a linear one of four dims."""
_CUBIC = -0.75
"""The parameter of the cubic convolution kernel, which ONNX fixes."""


def _sample(operation: Operation) -> bool:
    mode = operation.attribute("mode", b"linear").decode()
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    padding = operation.attribute("padding_mode", b"zeros").decode()
    return _Sampler(operation, mode, padding).sample()


class _Sampler:
    def __init__(self, operation: Operation, mode: str, padding: str) -> None:
        self._operation, self._mode, self._padding = operation, mode, padding
        self._batch, self._channels, *self._sides = operation.shape_of_sample(0)
        _, *self._points, _ = operation.shape_of_sample(1)
        self._count = int(np.prod(self._points))
        self._dtype = np.dtype(np.float64 if operation.kind(1) == TensorProto.DOUBLE else np.float32)
        self._is_aligned = bool(operation.attribute("align_corners", 0))

    def sample(self) -> bool:
        operation, sides = self._operation, self._sides
        taps = {"nearest": 1, "linear": 2, "cubic": 4}[self._mode] ** len(sides)
        if taps > _MOST_GATHERS:
            operation.refuse(f"mode {self._mode} of {len(sides)} dims is not supported")
        of_dims = [self._taps(dim) for dim in range(len(sides))]
        image = operation.reshape(operation.inputs[0], [self._batch, self._channels, int(np.prod(sides))])
        total = ""
        for chosen in itertools.product(*of_dims):
            term = self._picked(image, [tap[0] for tap in chosen])
            for _, weight, is_inside in chosen:
                if weight is not None:
                    cast = operation.cast(weight, operation.kind(0))
                    term = operation.make("Mul", term, cast)
                if is_inside is not None:
                    zero = operation.number(0, operation.dtype(0))
                    term = operation.make("Where", is_inside, term, zero)
            total = operation.make("Add", total, term) if total else term
        return operation.give(operation.reshape(total, [self._batch, self._channels, *self._points]))

    def _make(self, op: str, value: str, number: float) -> str:
        return self._operation.make(op, value, self._operation.number(number, self._dtype))

    def _taps(self, dim: int) -> Sequence[tuple[str, str | None, str | None]]:
        """Makes, for each element along a dim, its index, its weight and whether it is inside: [batch, 1, points]."""
        operation, size = self._operation, self._sides[dim]
        last = len(self._sides) - 1 - dim  # a grid has the innermost dim first
        part = operation.slice(operation.inputs[1], len(self._points) + 1, last, last + 1)
        kind = helper.np_dtype_to_tensor_dtype(self._dtype)
        grid = self._make(
            "Add", operation.cast(operation.reshape(part, [self._batch, 1, self._count]), kind), 1
        )
        if self._is_aligned:
            position = self._make("Mul", grid, (size - 1) / 2)
        else:
            position = self._make("Mul", self._make("Sub", self._make("Mul", grid, size), 1), 0.5)
        if self._mode == "nearest":
            position = operation.make("Round", position)
        position = self._moved(position, size)
        if self._mode == "nearest":
            return [self._tap(position, size)]
        base = operation.make("Floor", position)
        ratio = operation.make("Sub", position, base)
        offsets = (0, 1) if self._mode == "linear" else (-1, 0, 1, 2)
        taps = []
        for offset in offsets:
            index, _, is_inside = self._tap(self._make("Add", base, offset), size)
            taps.append((index, self._weight(ratio, offset), is_inside))
        return taps

    def _moved(self, position: str, size: int) -> str:
        """Moves a position outside to one inside, unless zeros are outside."""
        if self._padding == "border":
            return self._clamped(position, 0, size - 1)
        return self._reflected(position, size) if self._padding == "reflection" else position

    def _clamped(self, position: str, low: float, high: float) -> str:
        # NaN fails both comparisons, and is mapped to the first element.
        operation = self._operation
        first, last = (operation.number(number, self._dtype) for number in (low, high))
        raised = operation.make("Where", self._make("GreaterOrEqual", position, low), position, first)
        return operation.make("Where", self._make("LessOrEqual", raised, high), raised, last)

    def _reflected(self, position: str, size: int) -> str:
        """Reflects a position at the first and last elements if corners are aligned, else half an element beyond."""
        operation = self._operation
        low, high = (0.0, size - 1.0) if self._is_aligned else (-0.5, size - 0.5)
        if high == low:
            return self._make("Mul", position, 0)
        distance = operation.make("Abs", self._make("Sub", position, low))
        turns = operation.make("Floor", self._make("Div", distance, high - low))
        rest = operation.make("Sub", distance, self._make("Mul", turns, high - low))
        halves = self._make("Mul", operation.make("Floor", self._make("Mul", turns, 0.5)), 2)
        is_even = operation.make(
            "Equal", operation.make("Sub", turns, halves), operation.number(0, self._dtype)
        )
        backwards = operation.make("Sub", operation.number(high, self._dtype), rest)
        return operation.make("Where", is_even, self._make("Add", rest, low), backwards)

    def _tap(self, position: str, size: int) -> tuple[str, None, str | None]:
        """Makes the index of an element at a whole position, and whether it is inside if zeros are outside."""
        operation, is_inside = self._operation, None
        if self._padding == "zeros":
            is_inside = operation.make(
                "And",
                self._make("GreaterOrEqual", position, 0),
                self._make("LessOrEqual", position, size - 1),
            )
        elif self._padding == "reflection":
            position = self._reflected(position, size)
        clamped = self._clamped(position, 0, size - 1)
        return operation.cast(clamped, TensorProto.INT64), None, is_inside

    def _weight(self, ratio: str, offset: int) -> str:
        """Makes the weight of the element at an offset from the one before the position."""
        operation, a = self._operation, _CUBIC
        if self._mode == "linear":
            return ratio if offset else operation.make("Sub", operation.number(1, self._dtype), ratio)
        distance = operation.make("Abs", self._make("Sub", ratio, offset))
        factors = [a + 2, -(a + 3), 0, 1] if offset in (0, 1) else [a, -5 * a, 8 * a, -4 * a]
        value = operation.number(factors[0], self._dtype)
        for factor in factors[1:]:
            value = self._make("Add", operation.make("Mul", value, distance), factor)
        return value

    def _picked(self, image: str, indices: list[str]) -> str:
        """Gathers the elements with an index in each dim, for all channels: [batch, channels, points]."""
        operation = self._operation
        strides = np.cumprod([1, *self._sides[:0:-1]], dtype=np.int64)[::-1]
        place: Any = None
        for index, stride in zip(indices, strides, strict=True):
            part = operation.make("Mul", index, operation.constant(np.int64(stride)))
            place = part if place is None else operation.make("Add", place, part)
        wide = operation.make("Expand", place, operation.ints(1, self._channels, 1))
        return operation.make("GatherElements", image, wide, axis=2)


RULES = (
    Rule(
        "GridSample",
        _sample,
        "IREE rounds halves up, reads beyond the image for positions outside, and lacks modes",
        forms="all",
    ),
)
