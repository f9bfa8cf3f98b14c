"""Features of the ONNX front end beyond IREE's importer: weights, external data, names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper, numpy_helper
from tilewright.frontends.weights import MINIMUM_PARAMETER_ELEMENTS

Array = np.ndarray[Any, Any]

SIZE = MINIMUM_PARAMETER_ELEMENTS + 1


@pytest.fixture
def large() -> Array:
    return np.random.default_rng(3).standard_normal(SIZE).astype(np.float32)


def adding(initializers: dict[str, Array]) -> onnx.ModelProto:
    """Returns a model that adds every initializer to x."""
    nodes, last = [], "x"
    for number, name in enumerate(initializers):
        nodes.append(helper.make_node("Add", [last, name], [f"sum{number}"]))
        last = f"sum{number}"
    return make_model(nodes, [value("x", [SIZE])], [value(last, [SIZE])], initializers)


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


# External data


@pytest.fixture
def external(large: Array, tmp_path: Path) -> Path:
    path = tmp_path / "external.onnx"
    onnx.save(
        adding({"w": large, "c": np.array([2.5], np.float32)}),
        path,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    return path


def test_external_data_is_found_beside_the_model(external: Path, large: Array) -> None:
    np.testing.assert_allclose(tilewright.compile(external, threads=1)(large)[0], 2 * large + 2.5, rtol=1e-6)


def test_missing_external_data_is_named(external: Path) -> None:
    (external.parent / "weights.bin").unlink()
    with pytest.raises(tilewright.ModelError, match=r"weights\.bin") as error:
        tilewright.compile(external)
    assert "external.onnx" in str(error.value)


def test_truncated_external_data_is_refused(external: Path) -> None:
    data = external.parent / "weights.bin"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(tilewright.ModelError, match="external data cannot be read"):
        tilewright.compile(external)


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "a/../../secret.bin"])
def test_external_data_outside_the_folder_is_refused(external: Path, location: str) -> None:
    _refer(external, location=location)
    with pytest.raises(tilewright.ModelError, match="outside the model's folder"):
        tilewright.compile(external)


def _refer(external: Path, **changed: str) -> None:
    """Changes entries in every reference to external data."""
    model = onnx.load(external, load_external_data=False)
    for tensor in model.graph.initializer:
        kept = [entry for entry in tensor.external_data if entry.key not in changed]
        del tensor.external_data[:]
        tensor.external_data.extend(kept)
        for key, entry in changed.items():
            tensor.external_data.add(key=key, value=entry)
    external.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("offset", ["-8", "9223372036854775807", "92233720368547758070"])
def test_an_offset_that_no_file_has_is_refused(external: Path, offset: str) -> None:
    _refer(external, offset=offset)
    with pytest.raises(tilewright.ModelError, match=rf"external data cannot be read.* at {offset}"):
        tilewright.compile(external)


def test_only_a_file_is_external_data(external: Path) -> None:
    """A pipe without a writer, and a link to itself, are never read."""
    data = external.parent / "weights.bin"
    data.unlink()
    os.mkfifo(data)
    with pytest.raises(tilewright.ModelError, match=r"'weights\.bin' is no file"):
        tilewright.compile(external)
    data.unlink()
    data.symlink_to(data.name)
    with pytest.raises(tilewright.ModelError, match="malformed reference"):
        tilewright.compile(external)


def test_external_data_is_found_from_attributes_and_branches(tmp_path: Path) -> None:
    """Constants have external data in an attribute, and branches have weights of their own."""

    def outside(name: str, offset: int) -> onnx.TensorProto:
        tensor = onnx.TensorProto(name=name, dims=[3], data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights.bin")
        tensor.external_data.add(key="offset", value=str(offset))
        return tensor

    def branch(op: str, offset: int) -> onnx.GraphProto:
        node = helper.make_node(op, ["k", "w"], ["z"])
        return helper.make_graph([node], op, [], [value("z", [3])], [outside("w", offset)])

    np.arange(9, dtype=np.float32).tofile(tmp_path / "weights.bin")
    constant = helper.make_node("Constant", [], ["k"], value=outside("k", 24))
    branches = {"then_branch": branch("Add", 0), "else_branch": branch("Mul", 12)}
    choice = helper.make_node("If", ["c"], ["y"], **branches)
    inputs, outputs = [value("c", [], TensorProto.BOOL)], [value("y", [3])]
    graph = helper.make_graph([constant, choice], "branches", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    program = tilewright.compile(tmp_path / "model.onnx", threads=1)
    np.testing.assert_array_equal(program(np.array(True))[0], [6, 8, 10])
    np.testing.assert_array_equal(program(np.array(False))[0], [18, 28, 40])


def test_missing_external_data_of_half_bytes_is_named(tmp_path: Path) -> None:
    """ONNX's own reader, which unpacks them, raises errors of its own."""
    nodes = [
        helper.make_node("Cast", ["w"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "numbers"], ["y"]),
    ]
    model = make_model(nodes, [value("x", [SIZE])], [value("y", [SIZE])], {"w": np.zeros(SIZE)}, opset=21)
    [tensor] = model.graph.initializer
    tensor.CopyFrom(onnx.TensorProto(name="w", dims=[SIZE], data_type=onnx.TensorProto.INT4))
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(tilewright.ModelError, match=r"'weights\.bin' is missing"):
        tilewright.compile(tmp_path / "model.onnx")


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


def test_a_proto_with_external_data_says_what_to_do(external: Path) -> None:
    model = onnx.load(external, load_external_data=False)
    with pytest.raises(tilewright.ModelError, match=r"onnx\.load"):
        tilewright.compile(model)


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
