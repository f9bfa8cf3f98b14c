"""Compilations that do not use the compilation cache, or do not store what they made."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest
import tilewright
from cache_cases import GIGABYTE
from cache_key_cases import TEXT
from tilewright.api import stages
from tilewright.cache import store
from tilewright.cache.key import Request, UncacheableError
from tilewright.cache.store import Cache
from tilewright.records.options import CompileOptions
from tilewright.worker.process import Worker


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

    run_stages = stages.run_stages

    def run(*arguments: Any) -> Any:
        compiled = run_stages(*arguments)
        path.write_text(TEXT.replace("addf", "mulf"))
        return compiled

    monkeypatch.setattr(stages, "run_stages", run)
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
