"""Conditioning of a model: its error if every operator is exact and only rounds its result to its type.

A sum of values that cancel has no significant digits in any evaluation: mean(x - mean(x)) is zero up to rounding, so
every relative error is large. Bounds on magnitudes do not show that; this reference does.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import ModelProto, TensorProto, helper

from tilewright.reference.oracle import Array, run_double_onnx, run_double_ort, widen, widen_array

_ROUNDED = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_EXACT = "/exact"
_NARROW = "/narrow"


def rounded_reference(model: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Returns the outputs in float64, with the result of every operator rounded to its type."""
    rounding = _rounding(model)
    arrays = [widen_array(value) for value in inputs]
    try:
        return run_double_ort(rounding, arrays)
    except Exception:
        # ONNX Runtime lacks one of the operators in double; onnx's own evaluator has all of them.
        return run_double_onnx(rounding, arrays)


def _rounding(model: ModelProto) -> ModelProto:
    inferred = onnx.shape_inference.infer_shapes(model).graph
    types = {
        value.name: value.type.tensor_type.elem_type for value in (*inferred.value_info, *inferred.output)
    }
    wide = widen(model)
    nodes = []
    for node in wide.graph.node:
        name = node.output[0]
        nodes.append(node)
        if types.get(name) in _ROUNDED:
            node.output[0] = name + _EXACT
            nodes.append(helper.make_node("Cast", [name + _EXACT], [name + _NARROW], to=types[name]))
            nodes.append(helper.make_node("Cast", [name + _NARROW], [name], to=TensorProto.DOUBLE))
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del wide.graph.node[:]
    wide.graph.node.extend(kept)
    return wide
