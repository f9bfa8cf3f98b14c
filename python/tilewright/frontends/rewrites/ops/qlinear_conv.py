"""QLinearConv of other than images, or with a scale or zero point for each channel, by dequantised operands."""

from __future__ import annotations

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule
from tilewright.frontends.rewrites.uneven_pads import pad_first

_RANK_OF_IMAGES = 4


def _convolve_dequantised(operation: Operation) -> bool:
    """Makes a convolution of the dequantised operands; the scale of a bias is the product of their scales."""
    if not (operation.varies(4) or operation.varies(5)) and operation.rank(0) == _RANK_OF_IMAGES:
        return pad_first(operation, weights=3, zero=2)
    image, image_scale, image_zero, weights, scales, zeros, scale, zero, *bias = operation.inputs
    channels = [-1] + [1] * (len(operation.shape(3)) - 1)
    if operation.varies(5):
        zeros = operation.reshape(zeros, channels)
    difference = operation.difference(weights, zeros)
    steps = operation.reshape(scales, channels) if operation.varies(4) else scales
    weights = operation.make("Mul", operation.cast(difference, TensorProto.FLOAT), steps)
    factors = [operation.make("DequantizeLinear", image, image_scale, image_zero), weights]
    if bias and bias[0]:
        step = operation.make("Mul", scales, image_scale)
        factors.append(operation.make("Mul", operation.cast(bias[0], TensorProto.FLOAT), step))
    convolved = operation.make_with_attributes("Conv", *factors)
    operation.finish("QuantizeLinear", convolved, scale, zero)
    return True


RULES = (
    Rule(
        "QLinearConv",
        _convolve_dequantised,
        "IREE uses only one of the scales or zero points, convolves images only, and crashes at uneven pads",
        forms="a scale or zero point for each channel, sequences, volumes, uneven pads, open batches",
    ),
)
