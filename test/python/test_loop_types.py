"""Tests of the types that the bodies of loops get before they are imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from tilewright.frontends.rewrites.loop_types import has_unknown_lengths, settle_loops, stays_true

Shape = Sequence[int | str | None] | None


def value(name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def loop_model(
    ops: Sequence[NodeProto], *, initial: Shape, state: Shape = None, after: Shape = None
) -> ModelProto:
    """Builds a Loop with one state, `x`, of which `ops` make `next`; `row` is [1, 3] and `bounds` [2]."""
    body = helper.make_graph(
        [*ops, helper.make_node("Identity", ["going"], ["still"])],
        "body",
        [value("i", [], TensorProto.INT64), value("going", [], TensorProto.BOOL), value("x", state)],
        [value("still", [], TensorProto.BOOL), value("next", after)],
    )
    loop = helper.make_node("Loop", ["count", "", "x0"], ["y"], name="loop", body=body)
    inputs = [value("x0", initial), value("row", [1, 3]), value("count", [], TensorProto.INT64)]
    inputs.append(value("bounds", [2], TensorProto.INT64))
    graph = helper.make_graph([loop], "graph", inputs, [value("y", None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def settled(model: ModelProto) -> GraphProto:
    """Returns the body of the first node."""
    model = onnx.shape_inference.infer_shapes(model)
    while settle_loops(model):
        model = onnx.shape_inference.infer_shapes(model)
    body: GraphProto = helper.get_node_attr_value(model.graph.node[0], "body")
    return body


def shape_of(value: ValueInfoProto) -> list[Any] | None:
    if not value.type.tensor_type.HasField("shape"):
        return None
    dims = value.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims]


KEEPING = [helper.make_node("Tanh", ["x"], ["next"])]
GROWING = [helper.make_node("Concat", ["x", "row"], ["next"], axis=0)]


@pytest.mark.parametrize("initial", [[2, 3], ["n", 3]])
def test_a_state_that_keeps_its_shape_has_that_of_the_initial_one(initial: list[int | str]) -> None:
    body = settled(loop_model(KEEPING, initial=initial))
    assert shape_of(body.input[2]) == shape_of(body.output[1]) == initial


@pytest.mark.parametrize("initial", [[2, 3], ["n", 3]])
def test_a_dim_that_grows_has_no_length(initial: list[int | str]) -> None:
    assert shape_of(settled(loop_model(GROWING, initial=initial)).input[2]) == [None, 3]


def test_wrong_declarations_of_a_body_do_not_count() -> None:
    body = settled(loop_model(KEEPING, initial=[2, 3], state=[7], after=[7]))
    assert shape_of(body.input[2]) == shape_of(body.output[1]) == [2, 3]


def test_declarations_count_where_nothing_is_inferred() -> None:
    """The length of the slice is only known when the program runs; if it is not the declared one, that is an error."""
    cut = [helper.make_node("Slice", ["x", "bounds", "bounds"], ["next"])]
    assert shape_of(settled(loop_model(cut, initial=[2, 3], after=[2, 3])).input[2]) == [2, 3]
    assert shape_of(settled(loop_model(cut, initial=[2, 3])).input[2]) == [None, None]


def test_a_loop_of_unknown_length_makes_dims_of_unknown_length() -> None:
    model = loop_model(KEEPING, initial=[2, 3])
    model.graph.output[0].CopyFrom(value("y", [2, 3]))
    assert has_unknown_lengths(model.graph)
    del model.graph.input[2]
    model.graph.initializer.append(helper.make_tensor("count", TensorProto.INT64, [], [4]))
    assert not has_unknown_lengths(model.graph)


def test_a_condition_that_is_passed_on_stays_true() -> None:
    body = helper.get_node_attr_value(loop_model(KEEPING, initial=[1]).graph.node[0], "body")
    assert stays_true(body, lambda name: None)
    body.node[-1].op_type = "Not"
    assert not stays_true(body, lambda name: None)
