"""Weights of ONNX models in files of their own: found, or refused by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper
from onnx_cases import SIZE, adding, large_weight

Array = np.ndarray[Any, Any]


@pytest.fixture
def large() -> Array:
    return large_weight()


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


def test_a_proto_with_external_data_says_what_to_do(external: Path) -> None:
    model = onnx.load(external, load_external_data=False)
    with pytest.raises(tilewright.ModelError, match=r"onnx\.load"):
        tilewright.compile(model)
