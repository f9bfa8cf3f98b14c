"""Casts to u16 and u64, and of floats to u32, which go through signed integers that have the same low bits.

A float of 2^63 or more is lessened by 2^64 first, which is exact. Casts of a value out of range are undefined, but not
those of integers: they keep the low bits.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule


def _cast_through_signed(operation: Operation) -> bool:
    target = operation.attribute("to")
    if target == TensorProto.UINT32 and operation.is_float(0):
        return operation.finish("Cast", operation.cast(operation.inputs[0], TensorProto.INT64), to=target)
    if target not in (TensorProto.UINT16, TensorProto.UINT64):
        return False
    value, source = operation.inputs[0], operation.kind(0)
    signed = TensorProto.INT64 if TensorProto.UINT64 in (source, target) else TensorProto.INT32
    if source in (TensorProto.INT64, TensorProto.UINT32):
        signed = TensorProto.INT64
    if source == signed:
        return False
    if operation.is_float(0) and target == TensorProto.UINT64:
        wide = operation.cast(value, TensorProto.DOUBLE)
        bound, step = (operation.number(2.0**power, np.dtype(np.float64)) for power in (63, 64))
        is_large = operation.make("GreaterOrEqual", wide, bound)
        value = operation.make("Where", is_large, operation.make("Sub", wide, step), wide)
    return operation.finish("Cast", operation.cast(value, signed), to=target)


RULES = (
    Rule(
        "Cast",
        _cast_through_signed,
        "IREE's importer has no cast to it",
        forms="to uint16 and uint64; to int16 and uint32 in the importer",
    ),
)
