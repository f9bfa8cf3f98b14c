"""Parts of a model that `tilewright check` cuts out: their inputs, constants and bodies."""

from __future__ import annotations

import numpy as np
import onnx
from check_cases import RNG, WEIGHTS, chain
from conftest import make_model, value
from onnx import helper
from tilewright.compare.windows import Windows, names_read, values_of


def test_a_window_reads_values_and_weights() -> None:
    model, x = chain(), RNG.standard_normal((7, 12)).astype(np.float32)
    windows = Windows(model, values_of(model, {"x": x}), ["x"])
    window, inputs = windows.window([2, 3])
    assert [v.name for v in window.graph.input] == ["t"]
    assert [t.name for t in window.graph.initializer] == ["b"]
    assert [v.name for v in window.graph.output] == ["e"]
    np.testing.assert_allclose(inputs[0], np.tanh(x @ WEIGHTS["w"]), rtol=1e-5, atol=1e-6)
    onnx.checker.check_model(window)


def test_a_window_keeps_shapes_as_constants() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Reshape", ["n", "s"], ["y"]),
    ]
    model = make_model(nodes, [value("x", [2, 3])], [value("y", [2, 3])])
    windows = Windows(model, values_of(model, {"x": np.ones((2, 3), np.float32)}), ["x"])
    window, inputs = windows.window([2])
    assert [v.name for v in window.graph.input] == ["n"]
    assert [t.name for t in window.graph.initializer] == ["s"]
    assert len(inputs) == 1


def test_ops_with_bodies_read_what_their_bodies_read() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["outer", "c"], ["r"])],
        "body",
        [],
        [value("r", [2])],
        [onnx.numpy_helper.from_array(np.ones(2, np.float32), "c")],
    )
    node = helper.make_node("If", ["condition"], ["y"], then_branch=body, else_branch=body)
    assert names_read(node) == ["condition", "outer", "outer"]


def test_ancestors_leave_out_other_branches() -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Abs", ["x"], ["b"]),
        helper.make_node("Exp", ["a"], ["y"]),
    ]
    model = make_model(nodes, [value("x", [2])], [value("y", [2]), value("b", [2])])
    windows = Windows(model, values_of(model, {"x": np.ones(2, np.float32)}), ["x"])
    assert windows.ancestors(2) == [0, 2]
