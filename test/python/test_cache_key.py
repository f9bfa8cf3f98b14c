"""The key of a compilation: what changes it, and what must not. Nothing here is compiled."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from cache_key_cases import TEXT, Key
from cache_key_cases import key as key
from parameter_files import archive
from tilewright import Plan, Target
from tilewright.cache.key import KEYED, NOT_KEYED
from tilewright.records.targets import MicroKernel, unregister_micro_kernel
from tilewright.tuning.database import Database, Decision


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
    "deploy": lambda folder: {"deploy": False},
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
