"""Models that nobody trusts: what they refer to, claim or hold is bounded, or refused with an error."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper, numpy_helper
from tilewright.errors import ModelError
from tilewright.frontends.archives import check_archive

Array = np.ndarray[Any, Any]


def _external(location: str) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def _with_weight(tensor: TensorProto, *, place: str) -> onnx.ModelProto:
    """Returns a model of x + w; w is an initializer, or a constant of the graph, of a branch or of a function."""
    constant, add = (
        helper.make_node("Constant", [], ["w"], value=tensor),
        helper.make_node("Add", ["x", "w"], ["y"]),
    )
    inputs, outputs = [value("x", [4])], [value("y", [4])]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    functions = []
    nodes = [constant, add]
    if place == "function":
        functions = [helper.make_function("own", "f", ["x"], ["y"], nodes, opsets[:1])]
        nodes = [helper.make_node("f", ["x"], ["y"], domain="own")]
    elif place == "branch":
        branch = helper.make_graph(nodes, "branch", [], outputs)
        yes = helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True)))
        nodes = [yes, helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)]
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    if place == "initializer":
        del graph.node[0]
        graph.initializer.append(tensor)
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)


_PLACES = ["initializer", "node", "branch", "function"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with weights, beside a secret, with the secret's folder as the working directory."""
    (tmp_path / "model").mkdir()
    np.full(4, 3, np.float32).tofile(tmp_path / "model" / "weights.bin")
    np.full(4, 7, np.float32).tofile(tmp_path / "secret.bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "model"


@pytest.mark.parametrize("place", _PLACES)
def test_external_data_is_read_beside_the_model(place: str, folder: Path) -> None:
    onnx.save(_with_weight(_external("weights.bin"), place=place), folder / "model.onnx")
    program = tilewright.compile(folder / "model.onnx", threads=1)
    np.testing.assert_array_equal(program(np.ones(4, np.float32))[0], np.full(4, 4, np.float32))


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize(
    "location", ["../secret.bin", "{parent}/secret.bin", "link.bin", "folder/../../secret.bin"]
)
def test_external_data_outside_the_folder_is_refused(place: str, location: str, folder: Path) -> None:
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    (folder / "folder").mkdir()
    tensor = _external(location.format(parent=folder.parent))
    onnx.save(_with_weight(tensor, place=place), folder / "model.onnx")
    with pytest.raises(ModelError, match="is outside the model's folder"):
        tilewright.compile(folder / "model.onnx", threads=1)


@pytest.mark.parametrize("place", _PLACES)
def test_a_proto_reads_no_files(place: str, folder: Path) -> None:
    with pytest.raises(ModelError, match="a ModelProto does not say in which folder"):
        tilewright.compile(_with_weight(_external("secret.bin"), place=place), threads=1)


def test_sparse_initializers_are_refused() -> None:
    """A sparse tensor may claim any size in a few bytes."""
    values, indices = (
        numpy_helper.from_array(np.ones(1, np.float32), "s"),
        numpy_helper.from_array(np.zeros(1, int), "i"),
    )
    model = make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", [4])], [value("y", [4])])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2**40]))
    with pytest.raises(ModelError, match="'s': sparse initializers are not supported"):
        tilewright.compile(model, threads=1)


@pytest.mark.parametrize("sizes", [(2**31, 2**31), (2**32, 2**32), (2**62, 2), (2**62, 4)])
def test_a_tensor_that_overflows_is_refused(sizes: tuple[int, int]) -> None:
    nodes = [
        helper.make_node("Expand", ["x", "s"], ["large"], name="grow"),
        helper.make_node("ReduceSum", ["large"], ["y"], keepdims=0),
    ]
    model = make_model(nodes, [value("x", [1])], [value("y", [])], {"s": np.array(sizes)})
    with pytest.raises(ModelError, match=r"'grow'.*'large'.* has more elements than can be addressed"):
        tilewright.compile(model, threads=1)


def test_an_input_that_overflows_is_refused() -> None:
    """ONNX's shape inference would take gigabytes for its shape in a model with loops."""
    shape = [2**63 - 1]
    model = make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", shape)], [value("y", shape)])
    with pytest.raises(
        ModelError, match="'x' of 9223372036854775807 has more elements than can be addressed"
    ):
        tilewright.compile(model, threads=1)


def test_functions_that_call_each_other_twice_are_refused() -> None:
    """Sixty of them are 2^60 nodes."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    functions = []
    for number in range(60):
        op, domain = (f"f{number - 1}", "own") if number else ("Neg", "")
        nodes = [helper.make_node(op, [a], [b], domain=domain) for a, b in (("x", "m"), ("m", "y"))]
        functions.append(helper.make_function("own", f"f{number}", ["x"], ["y"], nodes, opsets))
    graph = helper.make_graph(
        [helper.make_node("f59", ["x"], ["y"], domain="own")], "graph", [value("x", [4])], [value("y", [4])]
    )
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)
    with pytest.raises(ModelError, match="nodes when spelled out"):
        tilewright.compile(model, threads=1)


# Archives of torch.export


def _archive(path: Path, files: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_a_pickled_object_in_an_archive_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = _archive(tmp_path / "model.pt2", {"model/data/constants/opaque_obj_0": pickle.dumps(print)})
    with pytest.raises(ModelError, match=r"pickled object.*which is code"):
        tilewright.compile(path)


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    path = _archive(
        tmp_path / "m.pt2", {"model/data/weights/w": bytes(10**6)}, compression=zipfile.ZIP_DEFLATED
    )
    with pytest.raises(ModelError, match="is compressed"):
        check_archive(path)


def test_files_that_overlap_are_refused(tmp_path: Path) -> None:
    """Two entries of the directory name the same bytes."""
    path = _archive(tmp_path / "m.pt2", {"m/a": bytes(10**5), "m/b": bytes(10**5)})
    with zipfile.ZipFile(path) as archive:
        first, second = archive.infolist()
        directory = archive.start_dir
    second.header_offset, second.orig_filename = 0, first.filename
    data = bytearray(path.read_bytes()[:directory])
    with zipfile.ZipFile(io.BytesIO(), "w") as rewritten:
        rewritten.fp, rewritten.start_dir = io.BytesIO(bytes(data[: directory // 2])), directory // 2
        rewritten.filelist = [first] * 4
        rewritten._didModify = True  # type: ignore[attr-defined]
        rewritten.fp.seek(directory // 2)
        rewritten._write_end_record()  # type: ignore[attr-defined]
        path.write_bytes(rewritten.fp.getvalue())
        rewritten._didModify = False  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="overlap"):
        check_archive(path)


class _Attack:
    """An object whose pickle makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def test_a_pickle_in_place_of_tensors_is_not_run(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x * 2

    path, sign = tmp_path / "model.pt2", tmp_path / "was-run"
    torch.export.save(torch.export.export(Net(), (torch.ones(3),)), path)
    check_archive(path)
    assert tilewright.compile(path)(torch.ones(3)).tolist() == [2, 2, 2]
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    samples = [name for name in files if "sample_inputs" in name]
    assert samples
    buffer = io.BytesIO()
    torch.save((_Attack(sign),), buffer)
    files.update(dict.fromkeys(samples, buffer.getvalue()))
    with pytest.raises(ModelError, match=r"not a program of torch\.export"):
        tilewright.compile(_archive(tmp_path / "evil.pt2", files))
    assert not sign.exists()
