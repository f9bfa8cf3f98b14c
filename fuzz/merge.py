"""Merging of several models into one, because every module has a fixed cost of compilation, and because small kernels
then get packed together."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import ModelProto, helper

from fuzz.builder import IR_VERSION, OPSET

# This character ends the part's name in the names of its nodes.
_END = "/"


def merge(models: Mapping[str, ModelProto], *, name: str = "merged") -> ModelProto:
    """Returns one model, whose inputs and outputs are those of the parts in order."""
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
    """Returns the part that an op came from, by its location."""
    return location.partition(_END)[0]
