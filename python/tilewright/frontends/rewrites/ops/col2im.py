"""Col2Im as a transposed convolution whose filters place one element each."""

from __future__ import annotations

import math

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule


def _place_by_filters(operation: Operation) -> bool:
    image, block = operation.integers(1), operation.integers(2)
    if image is None or block is None:
        operation.refuse("the shapes of the image and of its blocks must be known", "make them initializers")
    count, dims = math.prod(block), len(block)
    strides = operation.attribute("strides", [1] * dims)
    dilations = operation.attribute("dilations", [1] * dims)
    pads = operation.attribute("pads", [0] * 2 * dims)
    windows = [
        (size + pads[i] + pads[i + dims] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
        for i, size in enumerate(image)
    ]
    batch, rows, _ = operation.shape_of_sample(0)
    channels = rows // count
    filters = np.eye(count, dtype=operation.dtype(0)).reshape(1, count, 1, *block)
    filters = np.broadcast_to(filters, (channels, count, 1, *block)).reshape(rows, 1, *block)
    columns = operation.reshape(operation.inputs[0], [batch, rows, *windows])
    placed = operation.make(
        "ConvTranspose",
        columns,
        operation.constant(np.ascontiguousarray(filters)),
        strides=strides,
        dilations=dilations,
        group=channels,
    )
    # Windows need not reach the end of the padded image, and the padding is cut off.
    covered = [(n - 1) * strides[i] + dilations[i] * (block[i] - 1) + 1 for i, n in enumerate(windows)]
    after = [size + pads[i] + pads[i + dims] - covered[i] for i, size in enumerate(image)]
    if any(after):
        sides = operation.ints(*[0] * (dims + 2), 0, 0, *after)
        placed = operation.make("Pad", placed, sides)
    if any(pads):
        begins, ends = pads[:dims], [pads[i] + size for i, size in enumerate(image)]
        axes = operation.ints(*range(2, 2 + dims))
        placed = operation.make("Slice", placed, operation.ints(*begins), operation.ints(*ends), axes)
    return operation.give(placed)


RULES = (Rule("Col2Im", _place_by_filters, "IREE's importer supports some forms only"),)
