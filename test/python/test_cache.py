"""The compilation cache: a hit is the same program, and a damaged entry is dropped."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx
import pytest
import tilewright
from cache_cases import GIGABYTE, entry_of
from cache_cases import cache as cache
from cache_cases import filled as filled
from cache_key_cases import TEXT
from tilewright.api import stages
from tilewright.cache import store
from tilewright.cache.store import Cache, DamagedEntryError


@pytest.fixture
def must_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a compilation that is not found in the cache fail."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("it was compiled")

    monkeypatch.setattr(stages, "run_stages", refuse)


def hit_lines(program: tilewright.Program) -> list[str]:
    """Returns the explanation without the note of the cache."""
    return [line for line in program.explain().splitlines() if "from the compilation cache" not in line]


@pytest.mark.usefixtures("must_hit")
def test_a_hit_is_the_same_program(filled: tuple[Path, tilewright.Program], model: onnx.ModelProto) -> None:
    folder, compiled = filled
    found = tilewright.compile(model, threads=1, cache=folder)
    assert found.module_path.read_bytes() == compiled.module_path.read_bytes()
    assert found.metadata.to_json() == compiled.metadata.to_json()
    assert found.plan == compiled.plan is not None
    assert str(found.signature) == str(compiled.signature)
    assert hit_lines(found) == compiled.explain().splitlines()
    x = np.random.default_rng(1).standard_normal((7, 33)).astype(np.float32)
    for ours, theirs in zip(found(x), compiled(x), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("must_hit")
def test_a_hit_says_so_and_when_it_was_compiled(
    filled: tuple[Path, tilewright.Program], model: onnx.ModelProto
) -> None:
    found = tilewright.compile(model, threads=1, cache=filled[0])
    about = json.loads((entry_of(filled[0]) / "entry.json").read_text())
    day = about["compiledAt"][:10]
    [note] = found.cache_notes
    assert note.startswith(f"from the compilation cache, compiled {day}")
    assert f"note: {note}" in found.explain().splitlines()
    assert found.explain("json")["cache"] == [note]


@pytest.mark.usefixtures("must_hit")
def test_a_hit_can_be_saved_and_outlives_the_cache(
    cache: Path, tmp_path: Path, model: onnx.ModelProto, weights: np.ndarray[Any, Any]
) -> None:
    found = tilewright.compile(model, threads=1, cache=cache)
    shutil.rmtree(cache)
    loaded = tilewright.load(found.save(tmp_path / "saved.vmfb"))
    assert loaded.explain().splitlines() == hit_lines(found)
    x = np.random.default_rng(2).standard_normal((7, 33)).astype(np.float32)
    for program in (found, loaded):
        np.testing.assert_allclose(program(x)[1], x.astype(np.float64) @ weights, rtol=1e-4, atol=1e-4)


def test_an_entry_is_a_saved_program(cache: Path, filled: tuple[Path, tilewright.Program]) -> None:
    loaded = tilewright.load(entry_of(cache) / "model.vmfb")
    assert loaded.explain() == filled[1].explain()


def test_weights_are_not_copied_within_a_file_system(
    tmp_path: Path, filled: tuple[Path, tilewright.Program]
) -> None:
    _, program = filled
    source = program.parameter_paths["model"]
    target = source.parent / "again.irpa"  # surely on the same file system
    record = store._place(source, target)
    assert record.bytes == source.stat().st_size
    # A clone is another inode that shares the blocks, which no portable call shows.
    assert target.samefile(source) or store._clone(source, tmp_path / "clone.irpa")
    target.unlink()


def test_weights_are_copied_where_nothing_else_works(
    tmp_path: Path, filled: tuple[Path, tilewright.Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(fcntl, "ioctl", refuse)
    source = filled[1].parameter_paths["model"]
    target = tmp_path / "copy.irpa"
    store._place(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert not target.samefile(source)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink], ids=["flipped bit", "truncated", "missing"])
@pytest.mark.parametrize("name", ["model.vmfb", "model.irpa", "model.json"])
def test_a_damaged_entry_is_dropped(cache: Path, name: str, damage: Callable[[Path], None]) -> None:
    entry = entry_of(cache)
    opened = Cache(cache, most_bytes=GIGABYTE)
    assert opened.find(entry.name, {}) is not None
    damage(entry / name)
    with pytest.raises(DamagedEntryError):
        opened.find(entry.name, {})
    assert not entry.exists()
    assert opened.find(entry.name, {}) is None


def test_an_entry_under_another_key_is_dropped(cache: Path) -> None:
    entry = entry_of(cache)
    entry.rename(entry.with_name("0" * 64))
    with pytest.raises(DamagedEntryError, match="another key"):
        Cache(cache, most_bytes=GIGABYTE).find("0" * 64, {})


def test_a_damaged_program_is_compiled_again_with_a_note(tmp_path: Path) -> None:
    tilewright.compile(TEXT, threads=1, cache=tmp_path)
    flip(entry_of(tmp_path) / "model.vmfb")
    [note] = tilewright.compile(TEXT, threads=1, cache=tmp_path).cache_notes
    assert "was damaged and is replaced" in note
    [note] = tilewright.compile(TEXT, threads=1, cache=tmp_path).cache_notes
    assert "from the compilation cache" in note
