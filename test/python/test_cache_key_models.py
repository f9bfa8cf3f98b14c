"""Models in the key of a compilation: every byte counts, wherever it lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from cache_key_cases import TEXT, Key
from cache_key_cases import key as key
from conftest import make_model, value
from onnx import helper


def test_a_changed_byte_of_a_model_of_the_same_size_is_seen(key: Key, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    before = key(path)
    path.write_text(TEXT.replace("twice", "times"))
    assert key(path) != before


@pytest.fixture
def external(tmp_path: Path) -> Path:
    """Returns the path of a model whose weights are in another file."""
    w = np.arange(600, dtype=np.float32).reshape(20, 30)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = make_model(nodes, [value("x", [3, 20])], [value("y", [3, 30])], {"w": w})
    path = tmp_path / "external.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_external_data_is_part_of_the_model(key: Key, external: Path) -> None:
    data = external.parent / "weights.bin"
    before = key(external)
    content = bytearray(data.read_bytes())
    content[17] ^= 1
    data.write_bytes(content)
    changed = key(external)
    assert changed != before
    content[17] ^= 1
    data.write_bytes(content)
    assert key(external) == before


def test_external_data_in_the_attribute_of_a_node_is_found(tmp_path: Path, external: Path) -> None:
    model = onnx.load(external, load_external_data=False)
    constant = helper.make_node("Constant", [], ["c"], value=model.graph.initializer[0])
    branch = helper.make_graph([constant], "branch", [], [value("c", [20, 30])])
    outer = helper.make_node("If", ["condition"], ["y"], then_branch=branch, else_branch=branch)
    graph = helper.make_graph([outer], "graph", [], [value("y", [20, 30])])
    path = tmp_path / "nested.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    assert tilewright.frontends.external_data(path) == ["weights.bin"]


def test_a_model_proto_and_its_bytes_are_the_same(key: Key, model: onnx.ModelProto) -> None:
    assert key(model) == key(model.SerializeToString(deterministic=True))
