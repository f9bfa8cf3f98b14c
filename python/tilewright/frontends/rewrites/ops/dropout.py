"""Dropout of nothing: in inference, or with a ratio of zero."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule


def _keep_all(operation: Operation) -> bool:
    is_training, ratio = operation.value(2), operation.value(1)
    if operation.has(2) and (is_training is None or is_training.any()):
        is_zero = ratio is not None and not ratio.any()
        if not is_zero:
            operation.refuse("dropping random elements is not supported", "export the model for inference")
    if operation.wants(1):
        shape = operation.static_shape(0)
        ones = operation.make("Expand", operation.constant(np.bool_(1)), operation.ints(*shape))
        operation.finish("Cast", ones, output=1, to=TensorProto.BOOL)
    return operation.give(operation.inputs[0])


RULES = (Rule("Dropout", _keep_all, "IREE drops elements at random, or fails"),)
