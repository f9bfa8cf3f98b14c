"""Small models and a compiled program that many tests use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper, numpy_helper
from saved_programs import LARGE, SMALL, Case, Scopes

Array = np.ndarray[Any, Any]

ROWS, COLUMNS, HIDDEN = 7, 37, 33


def make_model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initializers: dict[str, Array] | None = None,
    *,
    name: str = "graph",
    opset: int = 20,
) -> onnx.ModelProto:
    """Returns a checked model."""
    constants = [numpy_helper.from_array(value, key) for key, value in (initializers or {}).items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def value(name: str, shape: Sequence[Any], element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, list(shape))


def softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


@pytest.fixture(scope="session")
def weights() -> Array:
    return np.random.default_rng(0).standard_normal((HIDDEN, COLUMNS)).astype(np.float32)


@pytest.fixture(scope="session")
def model(weights: Array) -> onnx.ModelProto:
    """A product with weights that are large enough to become parameters, then a softmax; it has two outputs."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["scores"], name="project"),
        helper.make_node("Softmax", ["scores"], ["probabilities"], name="normalise", axis=-1),
    ]
    outputs = [value("probabilities", [ROWS, COLUMNS]), value("scores", [ROWS, COLUMNS])]
    return make_model(nodes, [value("x", [ROWS, HIDDEN])], outputs, {"w": weights}, name="attention")


@pytest.fixture(scope="session")
def model_path(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "attention.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture(scope="session")
def program(model_path: Path) -> tilewright.Program:
    return tilewright.compile(model_path, threads=[2])


@pytest.fixture(scope="session")
def x() -> Array:
    return np.random.default_rng(1).standard_normal((ROWS, HIDDEN)).astype(np.float32)


@pytest.fixture(scope="session")
def expected(x: Array, weights: Array) -> list[Array]:
    scores = x.astype(np.float64) @ weights.astype(np.float64)
    return [softmax(scores), scores]


@pytest.fixture
def assert_no_leftovers(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """Checks that a folder has no files that a failed command should have removed."""

    def check(folder: Path) -> None:
        assert [p.name for p in folder.iterdir() if p.suffix in (".vmfb", ".irpa", ".tmp")] == []

    yield check


@pytest.fixture(scope="session")
def large() -> Case:
    return Case(*LARGE)


@pytest.fixture(scope="session")
def other_large() -> Case:
    return Case(*LARGE)


@pytest.fixture(scope="session")
def small() -> Case:
    return Case(*SMALL)


@pytest.fixture(scope="session")
def other_small() -> Case:
    return Case(*SMALL)


@pytest.fixture(params=["small", "large"])
def case(request: pytest.FixtureRequest) -> Case:
    made: Case = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def other(request: pytest.FixtureRequest, case: Case) -> Case:
    """A program of the same model with other weights, whose files have the same sizes."""
    made: Case = request.getfixturevalue("other_large" if case.w.shape[0] == LARGE[1] else "other_small")
    return made


@pytest.fixture
def saved(case: Case, tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    return case.program.save(folder / "product.vmfb")


@pytest.fixture
def scopes(tmp_path: Path) -> Iterator[Scopes]:
    folder = tmp_path / "given"
    folder.mkdir()
    yield Scopes(folder)


@pytest.fixture(scope="module")
def rows_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A softmax of 64 rows, for which the unmeasured plan has tiles of fewer than 32 rows."""
    from benchmarks.workloads import stitch

    path = tmp_path_factory.mktemp("rows") / "rows.onnx"
    onnx.save(stitch.softmax((64, 100)), path)
    return path


@pytest.fixture(scope="module")
def tuned(rows_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which tiles of half the rows have won."""
    from tuning_cases import StubTimer, halves, tune

    path = tmp_path_factory.mktemp("tuned") / "tuning.db"
    tune(rows_path, path, StubTimer(halves))
    return path


@pytest.fixture
def fake_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets benchmarks import the fake peers of this folder."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def full_priority() -> Iterator[None]:
    """Lets the background have a full share of a busy machine, so that tests do not wait for it."""
    from tilewright.runtime import background

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "_LOWER_PRIORITY", 0)
        patch.setattr(background, "background", background.Background())
        yield


def running_sums_of_softmax() -> onnx.ModelProto:
    """Returns a softmax of x, 8x157, whose rows IREE sums in order."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"]),
        helper.make_node("CumSum", ["s", "axis"], ["y"], name="sums"),
    ]
    return make_model(nodes, [value("x", [8, 157])], [value("y", [8, 157])], {"axis": np.array([1])})


@pytest.fixture
def fresh_torch_backend() -> Iterator[None]:
    """Makes a test of torch.compile independent of what was compiled before it."""
    import torch
    from tilewright.torch import backend

    torch._dynamo.reset()
    backend.reports.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
