"""The tuning database: several processes use it, and one that cannot be used stops no compilation."""

from __future__ import annotations

import contextlib
import multiprocessing
import sqlite3
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from tilewright.tuning import lookup
from tilewright.tuning.database import Database, Measurement
from tuning_cases import compile_rows, damaged, decision, foreign


def _in_processes(work: Callable[..., None], *arguments: Any) -> None:
    """Runs `work(*arguments, own, all_here)` in three processes at once, where `own` is the number of each."""
    spawn = multiprocessing.get_context("spawn")
    all_here = spawn.Barrier(3, timeout=60)
    processes = [spawn.Process(target=work, args=(*arguments, own, all_here)) for own in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]


def _write_many(path: Path, own: int, all_here: Barrier) -> None:
    all_here.wait()
    with Database(path) as kept:
        for number in range(50):
            kept.keep_measurement("shared", f"{own}-{number}", Measurement(seconds=1.0))
            kept.keep_decision(decision(f"{number}"))


# Nothing is lost if several processes tune at once.
def test_several_processes_write_at_once(tmp_path: Path) -> None:
    _in_processes(_write_many, tmp_path / "db")
    with Database(tmp_path / "db") as kept:
        assert len(kept.measurements("shared")) == 150
        assert len(kept.decisions()) == 50


def _begin_many(folder: Path, _own: int, all_here: Barrier) -> None:
    for number in range(30):
        all_here.wait()
        Database(folder / f"{number}").close()


# The first use of a database may be in several processes.
def test_several_processes_begin_at_once(tmp_path: Path) -> None:
    _in_processes(_begin_many, tmp_path)


def _newer(path: Path) -> None:
    Database(path).close()
    # Otherwise, Python's garbage collector decides when it is closed and its log removed.
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 99")


def _changed(path: Path, *statements: str) -> None:
    """Writes a database that has a decision for the key `old`, and changes it."""
    with Database(path) as kept:
        kept.keep_decision(decision("old"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as raw:
        for statement in statements:
            raw.execute(statement)


def _without_forms(path: Path, *more: str, version: int = 2) -> None:
    """Writes a database of an earlier version, which has no forms."""
    _changed(path, "ALTER TABLE decisions DROP COLUMN form", *more, f"PRAGMA user_version = {version}")


def _without_regions(path: Path) -> None:
    """Writes a database of version 1."""
    _without_forms(path, "ALTER TABLE decisions DROP COLUMN region_ops", "DROP TABLE programs", version=1)


# Decisions survive an update of the compiler.
@pytest.mark.parametrize("make", [_without_regions, _without_forms])
def test_a_database_of_an_older_version_is_brought_up_to_date(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / "db")
    with Database(tmp_path / "db") as kept:
        assert kept.decisions() == [decision("old")]
        assert kept.programs() == []
    with Database(tmp_path / "db") as kept:
        kept.keep_decision(decision("new"))
        assert {own.key for own in kept.decisions()} == {"old", "new"}


# A broken database makes programs slower and a note, and no error.
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (foreign, "is not a tuning database"),
        (damaged, "is damaged"),
        (_newer, "of version 99"),
    ],
)
def test_compilation_goes_on_without_a_database_it_cannot_use(
    make: Callable[[Path], None], reason: str, rows_path: Path, tmp_path: Path
) -> None:
    make(tmp_path / "db")
    names = sorted(path.name for path in tmp_path.iterdir())
    program = compile_rows(rows_path, database=tmp_path / "db")
    [note] = program.metadata.notes
    assert reason in note and str(tmp_path / "db") in note
    assert program.kernels
    assert sorted(path.name for path in tmp_path.iterdir()) == names


# Another process that holds the database does not stop a compilation.
def test_compilation_goes_on_without_a_locked_database(
    rows_path: Path, tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_WAIT_SECONDS", 0.05)
    with Database(tuned) as kept:
        kept.export(tmp_path / "db")
    holder = sqlite3.connect(tmp_path / "db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    [note] = compile_rows(rows_path, database=tmp_path / "db").metadata.notes
    assert "is locked by another process" in note
    holder.close()
    assert compile_rows(rows_path, database=tmp_path / "db").metadata.notes == ()


# A decision of an older planner may no longer be legal.
def test_compilation_goes_on_without_a_plan_that_does_not_fit(
    rows_path: Path, tuned: Path, tmp_path: Path
) -> None:
    with Database(tuned) as kept:
        kept.export(tmp_path / "db")
    with Database(tmp_path / "db") as kept:
        [decision] = [own for own in kept.decisions() if not own.region_ops]
        decision.plan.kernels[0].groups[0].tiles[0] = 10**6
        kept.keep_decision(decision)
    program = compile_rows(rows_path, database=tmp_path / "db")
    [note] = program.metadata.notes
    assert "does not fit" in note
    assert program.kernels[0].measured == ()
