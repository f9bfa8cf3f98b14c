"""Rules of the ONNX front end are applied wherever they are needed, and nowhere else."""

from __future__ import annotations

import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from tilewright.frontends.onnx_importer import rewrite_model


def _value(name: str, shape: list[int], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(graph: GraphProto) -> ModelProto:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _ops(graph: GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def test_a_long_chain_of_ops_without_inferred_types_is_replaced() -> None:
    """ONNX infers nothing behind an op of another domain, so each of them waits for the one before it."""
    nodes = [
        helper.make_node("Gelu", [f"v{n}"], [f"v{n + 1}"], domain="com.microsoft", name=f"n{n}")
        for n in range(60)
    ]
    model = _model(helper.make_graph(nodes, "chain", [_value("v0", [3])], [_value("v60", [3])]))
    rewrite_model(model)
    assert {node.domain for node in model.graph.node} == {""}


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("size", "is_padded"), [(8, False), (9, True)], ids=["as many", "one more"])
def test_a_pool_is_padded_only_if_ceil_mode_makes_more_windows(op: str, size: int, is_padded: bool) -> None:  # noqa: FBT001
    pool = helper.make_node(op, ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    count = -(-size // 2)
    inputs, outputs = [_value("x", [1, 3, size, size])], [_value("y", [1, 3, count, count])]
    model = _model(helper.make_graph([pool], "pool", inputs, outputs))
    rewrite_model(model)
    assert ("Pad" in _ops(model.graph)) == is_padded


def test_branches_with_the_same_names_are_each_rewritten() -> None:
    """A cast to u16 ends in a cast of the same name, which must not hide that of the other branch."""

    def branch(node: NodeProto) -> GraphProto:
        return helper.make_graph([node], "branch", [], [_value("b", [2], TensorProto.UINT16)])

    cast = helper.make_node("Cast", ["x"], ["b"], to=TensorProto.UINT16)
    choose = helper.make_node("If", ["c"], ["y"], then_branch=branch(cast), else_branch=branch(cast))
    inputs = [_value("c", [], TensorProto.BOOL), _value("x", [2])]
    model = _model(helper.make_graph([choose], "choice", inputs, [_value("y", [2], TensorProto.UINT16)]))
    rewrite_model(model)
    (chosen,) = (node for node in model.graph.node if node.op_type == "If")
    then, otherwise = (_ops(attribute.g) for attribute in chosen.attribute)
    assert then == otherwise
    assert len(then) > 1
