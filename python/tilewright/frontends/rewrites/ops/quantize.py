"""QuantizeLinear and DequantizeLinear in the forms that IREE lacks: by blocks, of 16 bits, and of types that are codes.

Both compute in f32, with one rounding for each of the two steps: the division or product, and the result.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.codes import (
    INTEGERS_IN_CODES,
    NARROW_TYPES,
    decoded,
    encoded_floats,
    encoded_integers,
)
from tilewright.frontends.rewrites.rule import Operation, Rule

_RANGES: Mapping[int, tuple[int, int]] = {
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT8: (0, 255),
    TensorProto.INT16: (-32768, 32767),
    TensorProto.UINT16: (0, 65535),
    **INTEGERS_IN_CODES,
}


def dequantised(operation: Operation) -> bool:
    """Makes (x - zero point) · scale."""
    kind = operation.kind(0)
    value = _number(operation, operation.inputs[0], kind)
    if operation.has(2) and not _is_zero(operation, 2):
        zero = _number(operation, operation.inputs[2], kind)
        value = operation.make("Sub", value, _spread(operation, zero, 2))
    scale = operation.cast(_spread(operation, operation.inputs[1], 1), TensorProto.FLOAT)
    result = operation.make("Mul", value, scale)
    return operation.finish("Cast", result, to=operation.attribute("output_dtype", 0) or operation.kind(1))


def quantised(operation: Operation) -> bool:
    """Makes x / scale, rounded to an integer, plus the zero point, within the bounds of the type."""
    kind = (
        operation.kind(2) if operation.has(2) else operation.attribute("output_dtype", 0) or TensorProto.UINT8
    )
    wide = TensorProto.DOUBLE if operation.kind(0) == TensorProto.DOUBLE else TensorProto.FLOAT
    value = operation.make(
        "Div",
        operation.cast(operation.inputs[0], wide),
        operation.cast(_spread(operation, operation.inputs[1], 1), wide),
    )
    if kind not in _RANGES:
        saturate = bool(operation.attribute("saturate", 1))
        return operation.give(encoded_floats(operation, value, kind, wide=wide, saturate=saturate))
    value = operation.make("Round", value)
    dtype = np.dtype(np.float64 if wide == TensorProto.DOUBLE else np.float32)
    if operation.has(2) and not _is_zero(operation, 2):
        zero = operation.cast(_number(operation, operation.inputs[2], kind), wide)
        value = operation.make("Add", value, _spread(operation, zero, 2))
    low, high = (operation.number(bound, dtype) for bound in _RANGES[kind])
    integers = operation.cast(
        operation.make("Min", high, operation.make("Max", low, value)), TensorProto.INT32
    )
    if kind in NARROW_TYPES:
        return operation.give(encoded_integers(operation, integers, kind))
    return operation.finish("Cast", integers, to=kind)


def _number(operation: Operation, value: str, kind: int) -> str:
    if kind in NARROW_TYPES:
        return decoded(operation, value, kind)
    return operation.cast(value, TensorProto.FLOAT)


def _is_zero(operation: Operation, index: int) -> bool:
    value = operation.value(index)
    return value is not None and not value.astype(np.float64).any()


def _spread(operation: Operation, value: str, index: int) -> str:
    """Makes a scale or zero point that broadcasts with x: one number, one for each index of an axis, or one for each
    block along it."""
    shape, rank = operation.shape(index), operation.rank(0)
    if not shape or rank == 0:
        return operation.reshape(value, []) if shape else value
    axis, block = operation.attribute("axis", 1), operation.attribute("block_size", 0)
    axis %= rank
    if block:
        length = operation.static_shape(0)[axis]
        return operation.make("Gather", value, operation.constant(np.arange(length) // block), axis=axis)
    if shape == [1]:
        return operation.reshape(value, [])
    return operation.reshape(value, [-1] + [1] * (rank - 1 - axis))


def _dequantise(operation: Operation) -> bool:
    return not _is_of_iree(operation, operation.kind(0)) and dequantised(operation)


def _quantise(operation: Operation) -> bool:
    kind = (
        operation.kind(2) if operation.has(2) else operation.attribute("output_dtype", 0) or TensorProto.UINT8
    )
    return not _is_of_iree(operation, kind) and quantised(operation)


def _is_of_iree(operation: Operation, kind: int) -> bool:
    """Returns True for the forms that IREE's importer gets right: f32 and bytes, without blocks."""
    is_plain = not operation.attribute("block_size", 0) and not operation.attribute("precision", 0)
    floats = operation.kind(1 if operation.op == "DequantizeLinear" else 0)
    of_bytes = (TensorProto.INT8, TensorProto.UINT8)
    kinds = (*of_bytes, TensorProto.INT32) if operation.op == "DequantizeLinear" else of_bytes
    return is_plain and floats == TensorProto.FLOAT and operation.kind(1) == floats and kind in kinds


_WHY = "IREE's importer does not support it"
RULES = (
    Rule("DequantizeLinear", _dequantise, _WHY, forms="16 bits, blocks, scales of other types than float"),
    Rule("QuantizeLinear", _quantise, _WHY, forms="16 bits, blocks, scales of other types than float"),
)
