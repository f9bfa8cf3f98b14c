"""Several models as one, side by side: compiling has a price per module, and small kernels get packed together."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import ModelProto, helper

from fuzz.builder import IR_VERSION, OPSET

# What ends the name of a part in the names of its nodes.
_END = "/"


def merge(models: Mapping[str, ModelProto], *, name: str = "merged") -> ModelProto:
    """One model; the inputs and outputs of the parts follow each other."""
    parts = [onnx.compose.add_prefix(model, part + _END).graph for part, model in models.items()]
    graph = helper.make_graph(
        [node for part in parts for node in part.node],
        name,
        [value for part in parts for value in part.input],
        [value for part in parts for value in part.output],
        [tensor for part in parts for tensor in part.initializer],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def part_of(location: str) -> str:
    """The part that an op came from, by its location."""
    return location.partition(_END)[0]
