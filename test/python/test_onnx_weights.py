"""Weights of ONNX models: parameters and constants, their types, and names that look alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import SIZE, adding, large_weight

Array = np.ndarray[Any, Any]


@pytest.fixture
def large() -> Array:
    return large_weight()


def test_large_weights_are_parameters_and_small_ones_constants(large: Array) -> None:
    small = np.array([2.5], np.float32)
    program = tilewright.compile(adding({"w": large, "c": small}), threads=1)
    assert program.parameter_paths["model"].stat().st_size >= large.nbytes
    np.testing.assert_allclose(program(large)[0], large + large + small, rtol=1e-6)


def test_weights_do_not_become_text(large: Array, tmp_path: Path) -> None:
    wide = np.tile(large, 1000)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = make_model([node], [value("x", [wide.size])], [value("y", [wide.size])], {"w": wide})
    tilewright.compile(model, threads=1, dump_dir=tmp_path)
    for path in tmp_path.glob("*.mlir"):
        assert path.stat().st_size < 20_000


@pytest.mark.parametrize(
    "names", [("a:b", "a_b"), ("a_b", "a:b"), ("graph", "graph$async"), ("wei ght", 'q"uote')]
)
def test_names_that_look_alike_are_not_confused(names: tuple[str, str], large: Array) -> None:
    program = tilewright.compile(adding({names[0]: large, names[1]: 10 * large}), threads=1)
    np.testing.assert_allclose(program(0 * large)[0], 11 * large, rtol=1e-5)


def test_large_constant_nodes_become_parameters(large: Array) -> None:
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(large)),
        helper.make_node("Mul", ["x", "w"], ["y"]),
    ]
    program = tilewright.compile(make_model(nodes, [value("x", [SIZE])], [value("y", [SIZE])]), threads=1)
    assert "model" in program.parameter_paths
    np.testing.assert_allclose(program(large)[0], large * large, rtol=1e-6)


def test_values_in_typed_fields_are_read(large: Array) -> None:
    tensors = [
        helper.make_tensor("w", TensorProto.FLOAT, [SIZE], large.tolist()),
        helper.make_tensor("c", TensorProto.FLOAT, [1], [2.5]),
    ]
    nodes = [helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("Add", ["s", "c"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", [SIZE])], [value("y", [SIZE])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    np.testing.assert_allclose(tilewright.compile(model, threads=1)(large)[0], 2 * large + 2.5, rtol=1e-6)


def test_bfloat16_weights_keep_their_bits() -> None:
    wide = helper.make_tensor("w", TensorProto.BFLOAT16, [SIZE], [1.5] * SIZE)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    element = TensorProto.BFLOAT16
    graph = helper.make_graph(
        [node], "g", [value("x", [SIZE], element)], [value("y", [SIZE], element)], [wide]
    )
    program = tilewright.compile(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), threads=1
    )
    assert program.signature is not None
    x = np.ones(SIZE, program.signature.inputs[0].numpy_dtype)
    np.testing.assert_array_equal(program(x)[0].astype(np.float32), 2.5)


def test_weights_of_no_type_or_shape_are_named() -> None:
    model = adding({"w": np.zeros(SIZE, np.float32)})
    tensor = model.graph.initializer[0]
    tensor.dims[:] = [-SIZE, -1]
    with pytest.raises(
        tilewright.ModelError, match=rf"initializer 'w': its dims \[-{SIZE}, -1\] are not a valid shape"
    ):
        tilewright.compile(model)
    tensor.data_type = 99
    with pytest.raises(tilewright.ModelError, match="initializer 'w': its data type 99 is none of ONNX's"):
        tilewright.compile(model)
