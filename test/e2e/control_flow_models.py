"""Models of one node with bodies, for the tests of control flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tilewright
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

Shape = Sequence[int | str | None] | None

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


def value(name: str, shape: Shape, kind: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    return helper.make_node(op, list(inputs), list(outputs), name=outputs[0] or op, **attributes)


def graph_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
) -> GraphProto:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    return helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), tensors)


def compiled(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
) -> tilewright.Program:
    graph = graph_of(nodes, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return tilewright.compile(model, threads=1)


def equal(results: Sequence[Array], *expected: Any) -> None:
    assert len(results) == len(expected)
    for ours, exact in zip(results, expected, strict=True):
        exact = np.asarray(exact)
        assert ours.shape == exact.shape
        np.testing.assert_allclose(ours, exact, rtol=1e-6)


START, W = np.array([1.0, -0.5, 2.0], np.float32), np.array([0.5, 0.25, 1.0], np.float32)
