"""Gelu with the tanh approximation, with all digits of its constants."""

from __future__ import annotations

import math

import numpy as np
from onnx import helper

from tilewright.frontends.rewrites.rule import Operation, Rule


def _gelu_by_tanh(op: Operation) -> bool:
    """Computes x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2; the importer has 0.797724 for √(2/π) = 0.797885.

    Narrow floats are computed in f32, because the constant has more digits than they hold.
    """
    if op.attribute("approximate", b"none") != b"tanh":
        return False
    dtype = op.dtype(0)
    wide = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)

    def number(value: float) -> str:
        return op.constant(wide.type(value))

    x = op.inputs[0] if dtype == wide else op.cast(op.inputs[0], helper.np_dtype_to_tensor_dtype(wide))
    cube = op.make("Mul", op.make("Mul", x, x), x)
    inner = op.make("Add", x, op.make("Mul", cube, number(0.044715)))
    tanh = op.make("Tanh", op.make("Mul", inner, number(math.sqrt(2 / math.pi))))
    half = op.make("Mul", x, number(0.5))
    factor = op.make("Add", tanh, number(1))
    if dtype == wide:
        op.finish("Mul", half, factor)
    else:
        op.finish("CastLike", op.make("Mul", half, factor), op.inputs[0])
    return True


RULES = (
    Rule(
        "Gelu",
        _gelu_by_tanh,
        "IREE has four digits of √(2/π) only",
        forms="approximate tanh",
    ),
)
