"""QGemm of ONNX Runtime, as a product of bytes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.rule import CONTRIB_DOMAIN, UNSUPPORTED, Operation, Rule


def _multiply_and_scale(operation: Operation) -> bool:
    """Multiplies the sums of a QGemm in i32, including its bias, by the scales of both operands and `alpha`."""
    left, left_scale, left_zero, right, right_scale, right_zero, *others = operation.inputs
    bias, scale, zero = (*others, "", "", "")[:3]
    if operation.varies(1) or operation.varies(2):
        raise ModelError(
            "QGemm does not support a scale or a zero point for each row of A", where=f"'{operation.name}'"
        )
    if operation.attribute("transA", 0):
        left = operation.make("Transpose", left, perm=[1, 0])
    if operation.attribute("transB", 0):
        right = operation.make("Transpose", right, perm=[1, 0])
    sums = operation.make("MatMulInteger", left, right, left_zero, right_zero)
    if bias:
        sums = operation.make("Add", sums, bias)
    steps = operation.make("Mul", left_scale, right_scale)
    alpha = operation.constant(np.float32(operation.attribute("alpha", 1.0)))
    factors = operation.cast(sums, TensorProto.FLOAT), operation.make("Mul", steps, alpha)
    if not scale:
        operation.finish("Mul", *factors)
        return True
    operation.finish("QuantizeLinear", operation.make("Mul", *factors), scale, *([zero] if zero else []))
    return True


RULES = (Rule("QGemm", _multiply_and_scale, UNSUPPORTED, domain=CONTRIB_DOMAIN),)
