"""ConvInteger of other than images, or with zero points that vary, as a convolution of differences in floats.

Differences and their products are exact, and so is a sum below 2^24 in f32, or below 2^53 in f64. The padding counts as
the zero point of the image, whose difference is zero.
"""

from __future__ import annotations

import math

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule
from tilewright.frontends.rewrites.uneven_pads import pad_first

_LARGEST_PRODUCT = 255 * 255
_RANK_OF_IMAGES = 4


def _convolve_differences(operation: Operation) -> bool:
    if not operation.varies(3) and operation.rank(0) == _RANK_OF_IMAGES:
        return pad_first(operation, weights=1, zero=2)
    terms = math.prod(operation.static_shape(1)[1:])
    wide = TensorProto.FLOAT if terms * _LARGEST_PRODUCT < 1 << 24 else TensorProto.DOUBLE
    operands = []
    for index in (0, 1):
        value = operation.cast(operation.inputs[index], wide)
        if operation.has(2 + index):
            zero = operation.cast(operation.inputs[2 + index], wide)
            if operation.varies(2 + index):
                zero = operation.reshape(zero, [-1] + [1] * (operation.rank(1) - 1))
            elif operation.rank(2 + index):
                zero = operation.reshape(zero, [])
            value = operation.make("Sub", value, zero)
        operands.append(value)
    return operation.finish("Cast", operation.make_with_attributes("Conv", *operands), to=TensorProto.INT32)


RULES = (
    Rule(
        "ConvInteger",
        _convolve_differences,
        "IREE's importer does not support it",
        forms="a zero point for each channel, sequences, volumes, uneven pads, open batches",
    ),
)
