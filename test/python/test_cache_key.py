"""The key of a compilation: what changes it, and what must not. Nothing here is compiled."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import helper
from parameter_files import archive
from tilewright import Plan, Target
from tilewright.cache import build
from tilewright.cache.hashes import Hashes
from tilewright.cache.key import KEYED, NOT_KEYED
from tilewright.cache.use import CacheUse
from tilewright.ir.native import native
from tilewright.records.targets import MicroKernel, unregister_micro_kernel
from tilewright.runtime.held import HeldFile
from tilewright.tuning.database import Database, Decision

TEXT = """
func.func @twice(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = arith.addf %x, %x : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}"""

Key = Callable[..., str]


class _Found(Exception):
    """Carries the key out of a compilation before it begins."""


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Key:
    """Returns a function with the arguments of `tilewright.compile` that returns the key of the compilation."""

    def find(use: CacheUse) -> None:
        assert use._cache is not None
        raise _Found(use._key(use._request.key(use._cache.hashes)))

    monkeypatch.setattr(CacheUse, "find", find)

    def key_of(model: Any = TEXT, target: Any = "x86-64-avx2", **options: Any) -> str:
        with pytest.raises(_Found) as found:
            tilewright.compile(model, target, **{"cache": tmp_path / "cache", "threads": 2, **options})
        return str(found.value)

    return key_of


def decision(target: str, *, at: str = "2026-01-01T00:00:00+00:00") -> Decision:
    return Decision(
        key="key",
        name="kernel",
        target=target,
        plan=Plan.from_json({"kernels": [], "edges": []}),
        seconds=1.0,
        unmeasured_seconds=2.0,
        unfused_seconds=None,
        ratio=0.5,
        ratio_low=0.4,
        ratio_high=0.6,
        candidates=3,
        machine="a machine",
        measured_at=at,
    )


def _tuned(folder: Path, target: str, **changed: str) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.db"
    with Database(path) as database:
        database.keep_decision(decision(target, **changed))
    return path


def _plan(folder: Path) -> Path:
    path = folder / "plan.json"
    path.write_text("{}")
    return path


def _weights(folder: Path) -> Path:
    return archive(folder / "weights.irpa", {"w": np.zeros(3, np.float32)})


CHANGES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "model": lambda folder: {"model": TEXT.replace("addf", "mulf")},
    "target": lambda folder: {"target": "x86-64-v2"},
    "threads": lambda folder: {"threads": [2]},
    "iree_flags": lambda folder: {"iree_flags": ["--iree-opt-level=O1"]},
    "plan": lambda folder: {"plan": _plan(folder)},
    "strict": lambda folder: {"strict": True},
    "numerics": lambda folder: {"numerics": "strict"},
    "policy": lambda folder: {"policy": "unfused"},
    "plan_seconds": lambda _: {"plan_seconds": 0.5},
    "grid_sync": lambda folder: {"grid_sync": False},
    "tuning": lambda folder: {"tuning": _tuned(folder, "x86-64-avx2")},
    "entry": lambda folder: {"entry": "twice"},
    "parameters": lambda folder: {"parameters": {"model": _weights(folder)}},
    "state": lambda folder: {"state": {"y": "x"}},
    "dims": lambda _: {"dims": {"input0.0": 3}},
}
"""A change of every parameter that the key must show."""


@pytest.mark.parametrize("parameter", CHANGES)
def test_every_keyed_parameter_changes_the_key(key: Key, tmp_path: Path, parameter: str) -> None:
    assert key(**CHANGES[parameter](tmp_path)) != key()


def test_every_parameter_of_compile_is_in_the_key_or_has_a_reason_not_to_be() -> None:
    parameters = set(inspect.signature(tilewright.compile).parameters)
    assert parameters == {*KEYED, *NOT_KEYED}
    assert not KEYED.keys() & NOT_KEYED.keys()
    assert CHANGES.keys() == KEYED.keys()


def test_every_field_of_the_options_is_a_parameter_of_compile() -> None:
    assert set(tilewright.CompileOptions.__dataclass_fields__) <= {*KEYED, *NOT_KEYED}


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 60.0},
        {"progress": lambda step: None},
        {"threads": np.int64(2)},
        {"tuning": False},
    ],
    ids=["timeout", "progress", "a number of another type", "a database without decisions"],
)
def test_the_key_stays(key: Key, options: dict[str, Any]) -> None:
    assert key(**options) == key()


def test_the_order_of_mappings_does_not_matter(key: Key, tmp_path: Path) -> None:
    weights = _weights(tmp_path)
    one = key(state={"a": "b", "c": "d"}, parameters={"s": weights, "t": weights})
    assert one == key(state={"c": "d", "a": "b"}, parameters={"t": weights, "s": weights})


def test_the_folder_of_a_model_does_not_matter_but_its_name_does(key: Key, tmp_path: Path) -> None:
    for place in ("a/model.mlir", "b/model.mlir", "b/other.mlir"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(TEXT)
    os.utime(tmp_path / "a/model.mlir", (1, 1))
    here = key(tmp_path / "a/model.mlir")
    assert here == key(tmp_path / "b/model.mlir") == key(str(tmp_path / "b/model.mlir"))
    assert here != key(tmp_path / "b/other.mlir")


def test_the_temporary_folder_does_not_matter(
    key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert key() == before


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


def test_a_target_file_is_known_by_its_content(key: Key, tmp_path: Path) -> None:
    target = Target.lookup("x86-64-avx2")
    for name in ("a.json", "b.json"):
        target.save(tmp_path / name)
    same = key(target=tmp_path / "a.json")
    assert same == key(target=tmp_path / "b.json") == key(target=target)
    replace(target, block_bytes=target.block_bytes // 2).save(tmp_path / "b.json")
    assert key(target=tmp_path / "b.json") != same


@pytest.fixture
def micro_kernel() -> Iterator[MicroKernel]:
    kernel = MicroKernel(
        name="mine",
        lhs="f32",
        rhs="f32",
        accumulator="f32",
        vector_bytes=32,
        speed=2.0,
        body="""func.func @mine(%c: vector<8xf32>, %a: vector<8xf32>, %b: vector<8xf32>) -> vector<8xf32> {
          %0 = arith.mulf %a, %b : vector<8xf32>
          %1 = arith.addf %c, %0 : vector<8xf32>
          return %1 : vector<8xf32>
        }""",
    )
    yield kernel
    unregister_micro_kernel("mine")


def test_a_registered_micro_kernel_changes_the_key(key: Key, micro_kernel: MicroKernel) -> None:
    before = key()
    tilewright.register_micro_kernel(micro_kernel)
    registered = key()
    assert registered != before
    tilewright.register_micro_kernel(replace(micro_kernel, speed=3.0))
    assert key() not in (before, registered)


def test_only_decisions_for_the_target_change_the_key(key: Key, tmp_path: Path) -> None:
    tuned = key(tuning=_tuned(tmp_path, "x86-64-avx2"))
    assert key(tuning=_tuned(tmp_path, "cuda:h200")) == key()
    assert key(tuning=_tuned(tmp_path, "x86-64-avx2")) == tuned
    assert key(tuning=_tuned(tmp_path, "x86-64-avx2", at="2026-02-02T00:00:00+00:00")) not in (key(), tuned)


def test_the_assembler_changes_the_key_of_gpu_programs_only(
    key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keys() -> tuple[str, str]:
        return key(), key(target="cuda:h200")

    monkeypatch.setattr("tilewright.cache.key.find_ptxas", lambda: None)
    without = keys()
    other = tmp_path / "ptxas"
    other.write_text("another assembler")
    monkeypatch.setattr("tilewright.cache.key.find_ptxas", lambda: str(other))
    with_another = keys()
    assert (without[0] == with_another[0], without[1] == with_another[1]) == (True, False)


def test_an_edit_of_the_python_sources_changes_the_key(
    key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "tilewright"
    shutil.copytree(build._PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    before = key()
    monkeypatch.setattr(build, "_PACKAGE", copy)
    assert key() == before
    with (copy / "api/fuse.py").open("a") as file:
        file.write("# changed\n")
    assert key() != before


def test_the_identity_has_the_extension_module_and_the_compilers(tmp_path: Path) -> None:
    identity = build.compiler_identity(Hashes(tmp_path))
    library = Path(str(native.__file__))
    assert identity[library.name] == HeldFile(library, may_map=True).digest()
    assert identity["iree-base-compiler"] == "3.13.0"


def test_the_identity_is_the_same_beside_bindings_of_others(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from tilewright.cache.build import compiler_identity\n"
        "from tilewright.cache.hashes import Hashes\n"
        "before = compiler_identity(Hashes(pathlib.Path(sys.argv[1])))\n"
        "import iree.compiler.ir\n"
        "assert compiler_identity(Hashes(pathlib.Path(sys.argv[1]))) == before\n"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, env=path)


def test_a_remembered_hash_saves_reading_and_a_changed_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    digest = HeldFile.digest

    def counted(file: HeldFile) -> str:
        read.append(file.path.name)
        return digest(file)

    monkeypatch.setattr(HeldFile, "digest", counted)
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    first = Hashes(tmp_path / "hashes").digest(path)
    assert Hashes(tmp_path / "hashes").digest(path) == first
    assert read == ["weights"]
    times = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # tools that copy times do this
    assert Hashes(tmp_path / "hashes").digest(path) != first
    assert read == ["weights", "weights"]


def test_a_damaged_memory_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    first = Hashes(tmp_path / "hashes").digest(path)
    [memory] = (tmp_path / "hashes").iterdir()
    memory.write_text('{"path": 3}')
    assert Hashes(tmp_path / "hashes").digest(path) == first


def test_hashes_need_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    assert Hashes(path / "no folder").digest(path) == HeldFile(path, may_map=True).digest()


def test_a_folder_has_no_hash(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no regular file"):
        Hashes(tmp_path / "hashes").digest(tmp_path)
