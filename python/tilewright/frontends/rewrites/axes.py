"""Check of axis attributes that exceed the rank of their operand.

ONNX's checker does not look at them. IREE never finishes on a Softmax with such an axis, crashes on such a
LayerNormalization, and computes such a reduction along no axis at all.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper, numpy_helper

from tilewright.errors import ModelError

_WITH_AXIS = frozenset(
    (
        *("ArgMax", "ArgMin", "Concat", "Gather", "GatherElements", "Hardmax", "LayerNormalization"),
        *("LogSoftmax", "LpNormalization", "ScatterElements", "Softmax", "Split", "TopK"),
    )
)
"""Ops whose attribute `axis` is an axis of the first operand."""


def check_axes(model: onnx.ModelProto) -> None:
    """Raises `ModelError` for the first invalid axis. Types must have been inferred. Graphs nested in ops, such as
    branches and loop bodies, are not checked."""
    graph = model.graph
    ranks = {t.name: len(t.dims) for t in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.HasField("shape"):
            ranks[value.name] = len(value.type.tensor_type.shape.dim)
    constants = {t.name: t for t in graph.initializer}
    constants |= {
        n.output[0]: n.attribute[0].t
        for n in graph.node
        if n.op_type == "Constant" and n.attribute[0].HasField("t")
    }
    for node in graph.node:
        if node.domain not in ("", "ai.onnx") or not node.input or node.input[0] not in ranks:
            continue
        axes = _axes(node, constants)
        rank = ranks[node.input[0]] + (len(axes) if node.op_type == "Unsqueeze" else 0)
        for axis in axes:
            if not -rank <= axis < rank:
                raise ModelError(
                    f"{node.op_type} along axis {axis} of a tensor that has {rank} dims",
                    where=f"'{node.name}'",
                    hint=f"give one from {-rank} to {rank - 1}" if rank else None,
                )


def _axes(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> list[int]:
    """Returns the axes of a node, if they are known."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name in ("axis", "axes")}
    if node.op_type in _WITH_AXIS:
        return [attributes["axis"]] if "axis" in attributes else []
    if not node.op_type.startswith("Reduce") and node.op_type not in ("Squeeze", "Unsqueeze"):
        return []
    if len(node.input) > 1 and node.input[1] in constants:
        return [int(axis) for axis in numpy_helper.to_array(constants[node.input[1]]).flat]
    return list(attributes.get("axes", ()))
