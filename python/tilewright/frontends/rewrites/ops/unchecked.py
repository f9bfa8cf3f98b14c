"""Ops in ONNX's domain that its checker refuses: they get a domain of ours, and other rules replace them.

ONNX Runtime writes SimplifiedLayerNormalization without its domain. GroupNormalization of opset 18 has a scale and bias
for each group; it was withdrawn for one with those for each channel in opset 21.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import OWN_DOMAIN, Operation, Rule


def _rename(operation: Operation) -> bool:
    operation.same(*operation.inputs).domain = OWN_DOMAIN
    return True


def _rename_if_older(operation: Operation) -> bool:
    return 18 <= operation.opset < 21 and _rename(operation)


def _normalise_groups(operation: Operation) -> bool:
    """Normalises groups in f32, then scales and shifts each."""
    x, scale, bias = operation.inputs
    groups, kind = operation.attribute("num_groups"), operation.kind(0)
    wide = TensorProto.DOUBLE if kind == TensorProto.DOUBLE else TensorProto.FLOAT
    dtype = np.dtype(np.float64 if kind == TensorProto.DOUBLE else np.float32)
    parted = operation.reshape(operation.cast(x, wide), [0, groups, -1])
    centred = operation.make("Sub", parted, operation.reduce("Mean", parted, [2]))
    variance = operation.reduce("Mean", operation.make("Mul", centred, centred), [2])
    epsilon = operation.number(operation.attribute("epsilon", 1e-5), dtype)
    normal = operation.make("Div", centred, operation.make("Sqrt", operation.make("Add", variance, epsilon)))
    scale, bias = (operation.reshape(operation.cast(value, wide), [1, groups, 1]) for value in (scale, bias))
    result = operation.make("Add", operation.make("Mul", normal, scale), bias)
    shape = operation.shape(0)
    whole = operation.ints(*shape) if -1 not in shape else operation.make("Shape", x)
    return operation.finish("Cast", operation.make("Reshape", result, whole), to=kind)


_WHY = "ONNX's checker refuses it"
RULES = (
    Rule("GroupNormalization", _rename_if_older, _WHY, forms="opsets 18 to 20", needs_types=False),
    Rule("GroupNormalization", _normalise_groups, _WHY, domain=OWN_DOMAIN),
    Rule("SimplifiedLayerNormalization", _rename, _WHY, needs_types=False),
)
