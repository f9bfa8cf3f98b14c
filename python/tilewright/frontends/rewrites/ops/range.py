"""Range of f16 and bf16, in f32."""

from __future__ import annotations

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import NARROW_FLOATS, Operation, Rule


def _count_in_f32(operation: Operation) -> bool:
    if operation.kind(0) not in NARROW_FLOATS:
        return False
    wide = (operation.cast(value, TensorProto.FLOAT) for value in operation.inputs)
    return operation.finish("Cast", operation.make("Range", *wide), to=operation.kind(0))


RULES = (Rule("Range", _count_in_f32, "IREE's importer does not support it", forms="float16 and bfloat16"),)
