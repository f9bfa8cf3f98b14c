"""The normal form of scatters of whole rows: what it takes, and what it leaves to the importer, which refuses it."""

from __future__ import annotations

import pytest
from onnx import ModelProto, TensorProto, helper
from tilewright.frontends.rewrites.scatters import flatten_scatters


def _append(rows: int) -> ModelProto:
    graph = helper.make_graph(
        [helper.make_node("ScatterND", ["cache", "place", "row"], ["y"])],
        "graph",
        [
            helper.make_tensor_value_info("cache", TensorProto.FLOAT, [rows, 3]),
            helper.make_tensor_value_info("place", TensorProto.INT64, [1, 1]),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, [1, 3]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_rows_are_scattered_by_number() -> None:
    model = _append(5)
    flatten_scatters(model)
    assert [node.op_type for node in model.graph.node][-3:] == ["Reshape", "ScatterND", "Reshape"]


@pytest.mark.parametrize("axis", [b"text", [1, 2]])
def test_attributes_of_another_type_are_left_to_the_checker(axis: object) -> None:
    node = helper.make_node("ScatterElements", ["cache", "places", "row"], ["y"], axis=axis)
    inputs = [
        helper.make_tensor_value_info("cache", TensorProto.FLOAT, [5, 3]),
        helper.make_tensor_value_info("places", TensorProto.INT64, [1, 3]),
        helper.make_tensor_value_info("row", TensorProto.FLOAT, [1, 3]),
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 3])
    model = helper.make_model(helper.make_graph([node], "graph", inputs, [result]), ir_version=9)
    flatten_scatters(model)
    assert model.graph.node[-1] == node


# Their products, and the last of their places, are no i64.
@pytest.mark.parametrize("rows", [-(1 << 63), 1 << 62, -1])
def test_impossible_sizes_are_left_alone(rows: int) -> None:
    model = _append(rows)
    flatten_scatters(model)
    assert [node.op_type for node in model.graph.node] == ["ScatterND"]
