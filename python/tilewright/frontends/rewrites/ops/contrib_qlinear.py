"""The ops of ONNX Runtime on quantised operands: each is dequantised, computed in floats, and quantised again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.frontends.rewrites.rule import CONTRIB_DOMAIN, UNSUPPORTED, Operation, Rule


def _dequantised(operation: Operation, first: int) -> str:
    """Makes the floats of an operand: its numbers, scale and zero point are inputs from `first` on."""
    zero = [operation.inputs[first + 2]] if operation.has(first + 2) else []
    return operation.make("DequantizeLinear", *operation.inputs[first : first + 2], *zero)


def _quantise(operation: Operation, value: str, scale: int) -> bool:
    """Makes the result: its scale and zero point are inputs from `scale` on; a missing zero point is zero."""
    if operation.has(scale + 1):
        zero = operation.inputs[scale + 1]
    else:
        zero = operation.constant(np.zeros((), operation.dtype(0)))
    return operation.finish("QuantizeLinear", value, operation.inputs[scale], zero)


def _unary(op: str, *attributes: str) -> Callable[[Operation], bool]:
    def rewrite(operation: Operation) -> bool:
        given = {name: operation.attribute(name) for name in attributes}
        kept = {name: value for name, value in given.items() if value is not None}
        return _quantise(operation, operation.make(op, _dequantised(operation, 0), **kept), 3)

    return rewrite


def _binary(op: str) -> Callable[[Operation], bool]:
    def rewrite(operation: Operation) -> bool:
        result = operation.make(op, _dequantised(operation, 0), _dequantised(operation, 3))
        return _quantise(operation, result, 6)

    return rewrite


def _pool(operation: Operation) -> bool:
    """Pools an image, whose channels may be last."""
    rank, is_global = operation.rank(0), operation.op == "QLinearGlobalAveragePool"
    x, is_last = _dequantised(operation, 0), operation.attribute("channels_last", 0)
    if is_last:
        x = operation.transpose(x, [0, rank - 1, *range(1, rank - 1)])
    if is_global:
        x = operation.reduce("Mean", x, list(range(2, rank)))
    else:
        names = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
        given = {name: operation.attribute(name) for name in names}
        x = operation.make("AveragePool", x, **{k: v for k, v in given.items() if v is not None})
    if is_last:
        x = operation.transpose(x, [0, *range(2, rank), 1])
    return _quantise(operation, x, 3)


def _mean(operation: Operation) -> bool:
    axes = operation.attribute("axes") or list(range(operation.rank(0)))
    keepdims = bool(operation.attribute("keepdims", 1))
    return _quantise(
        operation, operation.reduce("Mean", _dequantised(operation, 0), axes, keepdims=keepdims), 3
    )


def _leaky(operation: Operation) -> bool:
    alpha = operation.attribute("alpha", 0.01)
    return _quantise(operation, operation.make("LeakyRelu", _dequantised(operation, 0), alpha=alpha), 3)


def _concatenate(operation: Operation) -> bool:
    """The scale and zero point of the result come first, then three inputs for each part."""
    parts = [_dequantised(operation, first) for first in range(2, len(operation.inputs), 3)]
    joined = operation.make("Concat", *parts, axis=operation.attribute("axis"))
    return operation.finish("QuantizeLinear", joined, *operation.inputs[:2])


def _softmax(operation: Operation) -> bool:
    """Up to opset 12, a Softmax ran over all dims from the axis on."""
    rank = operation.rank(0)
    axis = operation.attribute("axis", -1) % rank
    x = _dequantised(operation, 0)
    if operation.attribute("opset") >= 13 or axis == rank - 1:
        return _quantise(operation, operation.make("Softmax", x, axis=axis), 3)
    shape = operation.static_shape(0)
    flat = operation.make("Softmax", operation.reshape(x, [*shape[:axis], -1]), axis=axis)
    return _quantise(operation, operation.reshape(flat, shape), 3)


def _where(operation: Operation) -> bool:
    """The inputs are the condition, then three for either operand, then the scale and zero point of the result."""
    chosen = operation.make(
        "Where", operation.inputs[0], _dequantised(operation, 1), _dequantised(operation, 4)
    )
    return operation.finish("QuantizeLinear", chosen, *operation.inputs[7:9])


def _as_of_onnx(operation: Operation) -> bool:
    axis = operation.attribute("axis")
    given = {} if axis is None or not operation.varies(1) else {"axis": axis}
    return operation.finish(operation.op, *operation.inputs, **given)


RULES = (
    Rule("DequantizeLinear", _as_of_onnx, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearAdd", _binary("Add"), UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearAveragePool", _pool, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearConcat", _concatenate, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearGlobalAveragePool", _pool, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearLeakyRelu", _leaky, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearMul", _binary("Mul"), UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearReduceMean", _mean, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearSigmoid", _unary("Sigmoid"), UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearSoftmax", _softmax, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QLinearWhere", _where, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("QuantizeLinear", _as_of_onnx, UNSUPPORTED, domain=CONTRIB_DOMAIN),
)
