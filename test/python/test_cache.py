"""The compilation cache: a hit is the same program, and a cache that is damaged, full or shared fails nothing."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx
import pytest
import tilewright
from click.testing import CliRunner
from parameter_files import archive
from test_cache_key import TEXT
from tilewright.api import compilation, stages
from tilewright.cache import store
from tilewright.cache.key import Request, UncacheableError
from tilewright.cache.store import Cache, DamagedEntryError
from tilewright.cli.main import cli
from tilewright.records.options import CompileOptions
from tilewright.runtime.metadata import Metadata
from tilewright.worker.process import Worker

GIGABYTE = 10**9


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory, model: onnx.ModelProto
) -> tuple[Path, tilewright.Program]:
    """Returns a cache with one program with weights, and the program as it was compiled."""
    folder = tmp_path_factory.mktemp("cache")
    program = tilewright.compile(model, threads=1, cache=folder)
    assert program.cache_notes == ()
    return folder, program


@pytest.fixture
def cache(filled: tuple[Path, tilewright.Program], tmp_path: Path) -> Path:
    """Returns a copy of the filled cache, for tests that change it."""
    return Path(shutil.copytree(filled[0], tmp_path / "cache"))


@pytest.fixture
def must_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a compilation that is not found in the cache fail."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("it was compiled")

    monkeypatch.setattr(compilation, "run_stages", refuse)


def entry_of(folder: Path) -> Path:
    [entry] = (folder / "programs").iterdir()
    return entry


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


def test_a_dump_folder_makes_the_stages_run(tmp_path: Path) -> None:
    for _ in range(2):
        program = tilewright.compile(TEXT, threads=1, cache=tmp_path / "cache", dump_dir=tmp_path / "dump")
        assert program.cache_notes == ("the compilation cache is not used: dump_dir needs the stages to run",)
    assert (tmp_path / "dump/plan.json").exists()
    assert Cache(tmp_path / "cache", most_bytes=GIGABYTE).usage().programs == 0


@pytest.mark.parametrize("own", [lambda module: None, "canonicalize"], ids=["Python", "text"])
def test_passes_of_the_caller_run_each_time(tmp_path: Path, own: Any) -> None:
    for _ in range(2):
        program = tilewright.compile(TEXT, threads=1, cache=tmp_path, passes={"normalized": [own]})
        [note] = program.cache_notes
        assert note.startswith(
            "the compilation cache is not used: nothing tells whether passes of the caller"
        )


def test_inputs_for_a_module_of_pytorch_bypass_the_cache(tmp_path: Path) -> None:
    options = CompileOptions(cache=tmp_path, example_inputs=(1,))
    request = Request(model=TEXT, options=options, targets={}, is_host=False)
    with pytest.raises(UncacheableError, match="modules of PyTorch cannot be compared"):
        request.key(Cache(tmp_path, most_bytes=GIGABYTE).hashes)


_PRODUCT_AND_SUM = """
util.global private @w = #stream.parameter.named<"packed"::"w"> : tensor<33x64xf32>
util.global private @b = #stream.parameter.named<"plain"::"b"> : tensor<6x64xf32>
func.func @layer(%x: tensor<6x33xf32>) -> tensor<6x64xf32> {
  %w = util.global.load @w : tensor<33x64xf32>
  %b = util.global.load @b : tensor<6x64xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x64xf32>) -> tensor<6x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<6x33xf32>, tensor<33x64xf32>)
      outs(%init : tensor<6x64xf32>) -> tensor<6x64xf32>
  %z = arith.addf %y, %b : tensor<6x64xf32>
  return %z : tensor<6x64xf32>
}
"""


def test_only_parameter_files_that_are_rewritten_are_stored(tmp_path: Path) -> None:
    """The weights of a contraction are packed, and so stored. A file that the program reads as it is stays the user's
    own, and a hit reads it where it lies."""
    rng = np.random.default_rng(3)
    w, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((33, 64), (6, 64)))
    plain = archive(tmp_path / "plain.irpa", {"b": bias})
    paths = {"packed": archive(tmp_path / "packed.irpa", {"w": w}), "plain": plain}
    options: dict[str, Any] = {"threads": 1, "cache": tmp_path / "cache", "parameters": paths}
    compiled = tilewright.compile(_PRODUCT_AND_SUM, **options)
    found = tilewright.compile(_PRODUCT_AND_SUM, **options)
    assert found.cache_notes
    assert compiled.parameter_paths["plain"] == found.parameter_paths["plain"] == plain
    stored = {file.name for file in entry_of(tmp_path / "cache").glob("*.irpa")}
    assert stored == {"model.packed.irpa"}
    x = rng.standard_normal((6, 33)).astype(np.float32)
    np.testing.assert_allclose(found(x)[0], x.astype(np.float64) @ w + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_a_cache_that_cannot_be_written_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(store, "_place", refuse)
    program = tilewright.compile(TEXT, threads=1, cache=tmp_path)
    [note] = program.cache_notes
    assert note.startswith("not stored in the compilation cache") and os.strerror(error) in note
    assert list((tmp_path / "unfinished").iterdir()) == []


def test_a_cache_below_a_file_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    program = tilewright.compile(TEXT, threads=1, cache=tmp_path / "file" / "cache")
    [note] = program.cache_notes
    assert "Not a directory" in note


def test_a_model_that_changes_while_it_is_compiled_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)

    def run(*arguments: Any) -> Any:
        compiled = stages.run_stages(*arguments)
        path.write_text(TEXT.replace("addf", "mulf"))
        return compiled

    monkeypatch.setattr(compilation, "run_stages", run)
    program = tilewright.compile(path, threads=1, cache=tmp_path / "cache")
    assert program.cache_notes == (
        "not stored in the compilation cache, because its files or the compiler changed meanwhile",
    )


def test_a_compilation_that_recovered_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve = Worker.serve

    def served(worker: Worker, *arguments: Any) -> bool:
        is_there = serve(worker, *arguments)
        worker.deaths = 1
        return is_there

    monkeypatch.setattr(Worker, "serve", served)
    with tilewright.keep_compilers():
        tilewright.compile(TEXT, threads=1, cache=False)  # leaves a worker that the next one is served by
        [note] = tilewright.compile(TEXT, threads=1, cache=tmp_path).cache_notes
    assert note == "not stored in the compilation cache, because a step of it failed"
    assert Cache(tmp_path, most_bytes=GIGABYTE).usage().programs == 0


def keep(cache: Cache, key: str, folder: Path, *, size: int = 1000) -> None:
    """Stores a stand-in for a program."""
    folder.mkdir(exist_ok=True)
    module = folder / f"{key}.vmfb"
    module.unlink(missing_ok=True)  # the entry may be a link to the earlier one
    module.write_bytes(key.encode() * (size // len(key)))
    metadata = Metadata(target="none", threads=1, entry="f", signature=None)
    cache.keep(key, model="m", module=module, parameters={}, metadata=metadata, given={})


def test_the_least_recently_used_program_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", most_bytes=8000)  # of descriptions of about 1 kB and modules of 2 kB
    for number, key in enumerate(["aa", "bb"]):
        keep(cache, key, tmp_path / "made", size=2000)
        os.utime(tmp_path / "cache/programs" / key, (number, number))
    assert cache.find("aa", {}) is not None  # is now the more recently used one
    keep(cache, "cc", tmp_path / "made", size=2000)
    assert cache.find("bb", {}) is None
    assert cache.find("aa", {}) is not None and cache.find("cc", {}) is not None
    assert cache.usage().bytes <= 8000


def test_a_program_larger_than_the_cache_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_GB", "0.000001")
    [note] = tilewright.compile(TEXT, threads=1, cache=tmp_path).cache_notes
    assert note.startswith("not stored in the compilation cache: it has ")


def test_a_size_that_is_no_number_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_GB", "ten")
    with pytest.raises(tilewright.OutputError, match="TILEWRIGHT_CACHE_GB is 'ten'"):
        tilewright.compile(TEXT, threads=1, cache=tmp_path)


def test_leftovers_of_killed_processes_are_removed_and_others_stay(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", most_bytes=GIGABYTE)
    old, new = (tmp_path / "cache/unfinished" / name for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "model.vmfb").touch()
    os.utime(old, (1, 1))
    keep(cache, "aa", tmp_path / "made")
    assert (old.exists(), new.exists()) == (False, True)


_RACER = """
import sys
from pathlib import Path
from test_cache import keep
from tilewright.cache.store import Cache, DamagedEntryError
cache, made = Cache(Path(sys.argv[1]), most_bytes=6000), Path(sys.argv[2])
for turn in range(60):
    for key in ("aa", "bb", "cc"):
        keep(cache, key, made)
        found = cache.find(key, {})
        assert found is None or bytes(found.module.buffer[:2]) == key.encode()
    if turn % 10 == 9:
        cache.clear()
"""


def test_processes_that_store_find_and_remove_at_once_never_see_a_part(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", _RACER, str(tmp_path / "cache")]
    # Another conftest.py is on the path, too; the one beside this file comes first.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    racers = [
        subprocess.Popen([*arguments, str(tmp_path / name)], env=environment, stderr=subprocess.PIPE)
        for name in ("one", "two", "three")
    ]
    errors = [racer.communicate(timeout=120)[1].decode() for racer in racers]
    assert errors == [""] * 3


def test_the_environment_names_the_cache_and_switches_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    assert CompileOptions().cache == tmp_path
    for off in ("off", "OFF", "0"):
        monkeypatch.setenv("TILEWRIGHT_CACHE", off)
        assert CompileOptions().cache is None
    monkeypatch.delenv("TILEWRIGHT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert CompileOptions().cache == tmp_path / "tilewright/programs"


def run(*arguments: Any) -> Any:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def test_the_command_line_uses_the_cache(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(TEXT)
    arguments = ("compile", model, "-o", tmp_path / "model.vmfb", "--cache", tmp_path / "cache")
    assert "from the compilation cache" not in run(*arguments).stderr
    assert "note: from the compilation cache, compiled 20" in run(*arguments).stderr
    assert "from the compilation cache" not in run(*arguments[:-2], "--no-cache").stderr


def test_the_command_shows_the_cache(cache: Path) -> None:
    shown = json.loads(run("cache", "--cache", cache, "--json").stdout)
    size = sum(file.stat().st_size for file in entry_of(cache).iterdir())
    assert shown == {"folder": str(cache), "programs": 1, "bytes": size, "mostBytes": 10 * GIGABYTE}
    assert f"{cache}: 1 programs" in run("cache", "--cache", cache).stdout


def test_the_command_clears_what_is_old(cache: Path) -> None:
    days_ago = time.time() - 3 * 86400
    os.utime(entry_of(cache), (days_ago, days_ago))
    assert (
        json.loads(run("cache", "clear", "--cache", cache, "--older-than", 4, "--json").stdout)["removed"]
        == 0
    )
    assert "1 programs removed" in run("cache", "clear", "--cache", cache, "--older-than", 2).stdout
    assert "0 programs removed" in run("cache", "clear", "--cache", cache).stdout


def test_an_empty_cache_is_shown_and_cleared(tmp_path: Path) -> None:
    assert "0 programs" in run("cache", "--cache", tmp_path / "none").stdout
    assert "0 programs removed" in run("cache", "--cache", tmp_path / "none", "clear").stdout
    with contextlib.suppress(FileNotFoundError):
        assert list((tmp_path / "none").iterdir()) == []


def test_no_command_without_a_cache() -> None:
    result = CliRunner().invoke(cli, ["cache"])
    assert result.exit_code == 1
    assert "TILEWRIGHT_CACHE switches the cache off" in result.stderr
