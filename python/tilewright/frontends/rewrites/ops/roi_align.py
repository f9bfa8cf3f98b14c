"""RoiAlign with a fixed number of samples for each bin, as gathers of the four elements around each sample.

A sample more than one element outside the image counts as zero; all others are moved inside. As in ONNX's reference,
the mode max takes the largest weighted element, not the largest interpolated sample.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import UNSUPPORTED, Operation, Rule


def _align(operation: Operation) -> bool:
    ratio = int(operation.attribute("sampling_ratio", 0))
    if ratio <= 0:
        operation.refuse(
            "a number of samples that depends on the size of each region is not supported",
            hint="export it with a sampling_ratio of 1 or more",
        )
    return _Aligner(operation, ratio).align()


class _Aligner:
    def __init__(self, operation: Operation, ratio: int) -> None:
        self._op, self._ratio = operation, ratio
        _, self._channels, *self._sides = operation.shape_of_sample(0)
        self._dtype = np.dtype(np.float64 if operation.kind(1) == TensorProto.DOUBLE else np.float32)
        mode = operation.attribute(
            "coordinate_transformation_mode", b"half_pixel" if operation.opset >= 16 else b""
        )
        self._is_half_pixel = mode.lower() == b"half_pixel"
        self._scale = operation.attribute("spatial_scale", 1.0)

    def align(self) -> bool:
        op, (height, width) = self._op, self._sides
        results = [op.attribute("output_height", 1), op.attribute("output_width", 1)]
        rows = self._positions(1, results[0], height)
        columns = self._positions(0, results[1], width)
        samples = [count * self._ratio for count in results]
        # [regions, samples of rows, samples of columns] of indices into [batch · height · width, channels].
        first = op.make(
            "Mul", op.cast(op.inputs[2], TensorProto.INT64), op.constant(np.int64(height * width))
        )
        first = op.reshape(first, [-1, 1, 1])
        image = op.reshape(op.transpose(op.inputs[0], [0, 2, 3, 1]), [-1, self._channels])
        terms = []
        for row, row_weight in rows:
            for column, column_weight in columns:
                line = op.make("Mul", op.reshape(row, [-1, samples[0], 1]), op.constant(np.int64(width)))
                place = op.make("Add", op.make("Add", line, op.reshape(column, [-1, 1, samples[1]])), first)
                weight = op.make(
                    "Mul",
                    op.reshape(row_weight, [-1, samples[0], 1, 1]),
                    op.reshape(column_weight, [-1, 1, samples[1], 1]),
                )
                picked = op.make("Gather", image, place, axis=0)
                terms.append(op.make("Mul", picked, op.cast(weight, op.kind(0))))
        is_mean = op.attribute("mode", b"avg").lower() == b"avg"
        total = terms[0]
        for term in terms[1:]:
            total = op.make("Add" if is_mean else "Max", total, term)
        parted = op.reshape(total, [-1, results[0], self._ratio, results[1], self._ratio, self._channels])
        reduced = op.reduce("Mean" if is_mean else "Max", parted, [2, 4], keepdims=False)
        return op.give(op.transpose(reduced, [0, 3, 1, 2]))

    def _number(self, value: float) -> str:
        return self._op.number(value, self._dtype)

    def _positions(self, dim: int, results: int, length: int) -> list[tuple[str, str]]:
        """Makes the indices of the two elements around each sample along a dim, and their weights: [regions, samples].

        `dim` is 0 for columns and 1 for rows, as regions have them.
        """
        op, offset = self._op, 0.5 if self._is_half_pixel else 0.0
        kind = TensorProto.DOUBLE if self._dtype == np.float64 else TensorProto.FLOAT
        ends = []
        for at in (dim, dim + 2):
            end = op.cast(op.slice(op.inputs[1], 1, at, at + 1), kind)
            ends.append(op.make("Sub", op.make("Mul", end, self._number(self._scale)), self._number(offset)))
        size = op.make("Sub", ends[1], ends[0])
        if not self._is_half_pixel:
            size = op.make("Max", size, self._number(1))
        places = np.arange(results)[:, None] + (np.arange(self._ratio) + 0.5) / self._ratio
        along = op.constant((places.reshape(1, -1) / results).astype(self._dtype))
        position = op.make("Add", ends[0], op.make("Mul", size, along))
        is_inside = op.make(
            "And",
            op.make("GreaterOrEqual", position, self._number(-1)),
            op.make("LessOrEqual", position, self._number(length)),
        )
        inside = op.make("Where", is_inside, position, self._number(0))
        inside = op.make("Clip", inside, self._number(0), self._number(length - 1))
        below = op.make("Floor", inside)
        above = op.make("Min", op.make("Add", below, self._number(1)), self._number(length - 1))
        share = op.make("Sub", inside, below)
        counts = op.cast(is_inside, kind)
        shares = (op.make("Sub", self._number(1), share), share)
        return [
            (op.cast(index, TensorProto.INT64), op.make("Mul", weight, counts))
            for index, weight in zip((below, above), shares, strict=True)
        ]


RULES = (Rule("RoiAlign", _align, UNSUPPORTED, forms="a sampling_ratio of 1 or more"),)
