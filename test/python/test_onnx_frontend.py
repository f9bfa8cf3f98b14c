"""ONNX models that IREE's importer would misread: axes, missing shapes, functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from conftest import make_model, value
from onnx import helper, numpy_helper
from onnx_cases import SIZE, large_weight

Array = np.ndarray[Any, Any]


@pytest.fixture
def large() -> Array:
    return large_weight()


@pytest.mark.parametrize(
    ("op", "axis"),
    [
        *(("Softmax", 2), ("LogSoftmax", -3), ("ReduceSum", 99), ("ReduceMax", -(2**63)), ("Split", 2)),
        *(("LayerNormalization", 9), ("Squeeze", 7)),
    ],
)
def test_an_axis_that_an_operand_does_not_have_is_refused(op: str, axis: int) -> None:
    """IREE hangs on the first two, and reduces along no axis for the others."""
    inputs, axes = ["x"], {}
    attributes: dict[str, Any] = {}
    if op in ("ReduceSum", "Squeeze"):
        inputs, axes = ["x", "axes"], {"axes": np.array([axis])}
    elif op == "LayerNormalization":
        inputs, axes, attributes = ["x", "scale"], {"scale": np.ones(5, np.float32)}, {"axis": axis}
    else:
        attributes = {"axes": [axis]} if op == "ReduceMax" else {"axis": axis}
    node = helper.make_node(op, inputs, ["y"], name="the_node", **attributes)
    model = make_model([node], [value("x", [3, 5])], [value("y", [3, 5])], axes, opset=17)
    with pytest.raises(
        tilewright.ModelError, match=rf"'the_node': {op} along axis {axis} of a tensor that has 2"
    ):
        tilewright.compile(model, threads=1)


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_that_a_result_cannot_have_is_refused(axis: int) -> None:
    nodes = [
        helper.make_node("Constant", [], ["axes"], value=numpy_helper.from_array(np.array([axis]))),
        helper.make_node("Unsqueeze", ["x", "axes"], ["y"], name="the_node"),
    ]
    model = make_model(nodes, [value("x", [3, 5])], [value("y", [3, 5, 1])])
    with pytest.raises(
        tilewright.ModelError, match=f"Unsqueeze along axis {axis} of a tensor that has 3 dims"
    ):
        tilewright.compile(model, threads=1)


def test_an_output_may_be_without_a_shape() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    model = make_model([node], [value("x", [3, 5])], [value("y", [3, 5])])
    model.graph.output[0].type.tensor_type.ClearField("shape")
    (output,) = tilewright.compile(model, threads=1)(np.full((3, 5), -1, np.float32))
    np.testing.assert_array_equal(output, np.zeros((3, 5), np.float32))


def test_a_number_has_no_axis() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], name="the_node", axis=0)
    model = make_model([node], [value("x", [])], [value("y", [])])
    with pytest.raises(
        tilewright.ModelError, match="'the_node': Softmax along axis 0 of a tensor that has 0 dims"
    ):
        tilewright.compile(model, threads=1)


def test_functions_that_grow_without_end_are_refused() -> None:
    """Each function calls the one before twice, so that some hundred bytes double the memory."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    functions = [
        helper.make_function("own", "f0", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["y"])], opsets[:1])
    ]
    for level in range(1, 50):
        calls = [
            helper.make_node(f"f{level - 1}", ["x"], ["t"], domain="own"),
            helper.make_node(f"f{level - 1}", ["t"], ["y"], domain="own"),
        ]
        functions.append(helper.make_function("own", f"f{level}", ["x"], ["y"], calls, opsets))
    node = helper.make_node("f49", ["x"], ["y"], domain="own")
    graph = helper.make_graph([node], "g", [value("x", [3])], [value("y", [3])])
    model = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=9)
    with pytest.raises(tilewright.ModelError, match=r"function 'own\.f49': its functions are 6e\+14 nodes"):
        tilewright.compile(model)


def test_functions_of_a_model_are_inlined(large: Array) -> None:
    """One function calls another, with a weight, and with names that its caller also has."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    twice = helper.make_function(
        "own", "twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])], opsets[:1]
    )
    scaled = helper.make_function(
        "own",
        "scaled",
        ["x", "w"],
        ["z"],
        [helper.make_node("Mul", ["x", "w"], ["y"]), helper.make_node("twice", ["y"], ["z"], domain="own")],
        opsets,
    )
    nodes = [
        helper.make_node("scaled", ["x", "w"], ["z"], domain="own"),
        helper.make_node("twice", ["z"], ["y"], domain="own"),
    ]
    tensors = [numpy_helper.from_array(large, "w")]
    graph = helper.make_graph(nodes, "g", [value("x", [SIZE])], [value("y", [SIZE])], tensors)
    model = helper.make_model(graph, functions=[scaled, twice], opset_imports=opsets, ir_version=9)
    np.testing.assert_allclose(tilewright.compile(model, threads=1)(large)[0], 4 * large * large, rtol=1e-6)
