"""Any float32 workload in bfloat16: inputs, weights, outputs and casts; the same operators on the same shapes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

_LOWEST = -3.3895313892515355e38  # of bfloat16


def to_bfloat16(model: ModelProto) -> ModelProto:
    """A copy of the model in which every float32 is a bfloat16."""
    narrow = ModelProto()
    narrow.CopyFrom(model)
    for tensor in narrow.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(_narrowed(tensor))
    for value in (*narrow.graph.input, *narrow.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    for node in narrow.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.BFLOAT16
    return narrow


def _narrowed(tensor: TensorProto) -> TensorProto:
    # float32's lowest value, which masks are made of, would round to minus infinity.
    values = np.maximum(numpy_helper.to_array(tensor), np.float32(_LOWEST))
    return numpy_helper.from_array(values.astype(ml_dtypes.bfloat16), tensor.name)
