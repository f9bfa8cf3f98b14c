"""The activations of ONNX Runtime that optimisers write: BiasGelu, FastGelu, Gelu, QuickGelu, BiasSplitGelu, BiasAdd.

Narrow floats are computed in f32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import (
    CONTRIB_DOMAIN,
    NARROW_FLOATS,
    UNSUPPORTED,
    Dtype,
    Operation,
    Rule,
)


def in_wide(operation: Operation, value: str, compute: Callable[[str, Dtype], str]) -> str:
    """Makes a function of a value of the type of input 0, computed in f32 if that is narrower."""
    if operation.kind(0) not in NARROW_FLOATS:
        return compute(value, operation.dtype(0))
    wide = compute(operation.cast(value, TensorProto.FLOAT), np.dtype(np.float32))
    return operation.cast(wide, operation.kind(0))


def gelu_by_erf(operation: Operation, x: str, dtype: Dtype) -> str:
    """Makes x (1 + erf(x/√2)) / 2."""
    erf = operation.make("Erf", operation.make("Mul", x, operation.number(math.sqrt(0.5), dtype)))
    half = operation.make("Mul", x, operation.number(0.5, dtype))
    return operation.make("Mul", half, operation.make("Add", erf, operation.number(1, dtype)))


def gelu_by_tanh(operation: Operation, x: str, dtype: Dtype) -> str:
    """Makes x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2."""
    cube = operation.make("Mul", operation.make("Mul", x, x), x)
    inner = operation.make("Add", x, operation.make("Mul", cube, operation.number(0.044715, dtype)))
    tanh = operation.make(
        "Tanh", operation.make("Mul", inner, operation.number(math.sqrt(2 / math.pi), dtype))
    )
    half = operation.make("Mul", x, operation.number(0.5, dtype))
    return operation.make("Mul", half, operation.make("Add", tanh, operation.number(1, dtype)))


def _with_bias(gelu: Callable[[Operation, str, Dtype], str]) -> Callable[[Operation], bool]:
    def rewrite(operation: Operation) -> bool:
        x = operation.inputs[0]
        if operation.has(1):
            x = operation.make("Add", x, operation.inputs[1])
        return operation.give(in_wide(operation, x, lambda value, dtype: gelu(operation, value, dtype)))

    return rewrite


def _sigmoid_gelu(operation: Operation) -> bool:
    alpha = operation.attribute("alpha", 1.702)

    def compute(x: str, dtype: Dtype) -> str:
        scaled = operation.make("Mul", x, operation.number(alpha, dtype))
        return operation.make("Mul", x, operation.make("Sigmoid", scaled))

    return operation.give(in_wide(operation, operation.inputs[0], compute))


def _gate_by_gelu(operation: Operation) -> bool:
    """Adds the bias, and multiplies the first half of the channels by the Gelu of the second."""
    x = operation.make("Add", *operation.inputs)
    channels = operation.shape(1)[0]
    if channels < 0:
        operation.refuse("the number of its channels is not known", "declare the shape of its bias")
    axis, half = operation.rank(0) - 1, channels // 2
    gate = operation.slice(x, axis, half, channels)
    gate = in_wide(operation, gate, lambda value, dtype: gelu_by_erf(operation, value, dtype))
    return operation.finish("Mul", operation.slice(x, axis, 0, half), gate)


def _add_twice(operation: Operation) -> bool:
    x, bias, skip = operation.inputs
    return operation.finish("Add", operation.make("Add", x, bias), skip)


RULES = (
    Rule("BiasAdd", _add_twice, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("BiasGelu", _with_bias(gelu_by_erf), UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("BiasSplitGelu", _gate_by_gelu, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("FastGelu", _with_bias(gelu_by_tanh), UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("Gelu", _with_bias(gelu_by_erf), UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QuickGelu", _sigmoid_gelu, UNSUPPORTED, domain=CONTRIB_DOMAIN),
)
