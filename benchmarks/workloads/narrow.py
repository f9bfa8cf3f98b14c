"""Converts any float32 workload to a narrower type: inputs, weights, outputs and casts; operators and shapes stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper


@dataclass(frozen=True)
class _Narrow:
    element: int
    dtype: Any
    lowest: float


_TYPES = {
    "bf16": _Narrow(TensorProto.BFLOAT16, ml_dtypes.bfloat16, -3.3895313892515355e38),
    "f16": _Narrow(TensorProto.FLOAT16, np.float16, -65504.0),
}


def to_narrow(model: ModelProto, dtype: str) -> ModelProto:
    """Returns a copy of the model in which every float32 is "bf16" or "f16"."""
    kind = _TYPES[dtype]
    narrow = ModelProto()
    narrow.CopyFrom(model)
    for tensor in narrow.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(_narrowed(tensor, kind))
    for value in (*narrow.graph.input, *narrow.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = kind.element
    for node in narrow.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = kind.element
    return narrow


def _narrowed(tensor: TensorProto, kind: _Narrow) -> TensorProto:
    # The lowest float32 value, which masks contain, would round to minus infinity.
    values = np.maximum(numpy_helper.to_array(tensor), np.float32(kind.lowest))
    return numpy_helper.from_array(values.astype(kind.dtype), tensor.name)
