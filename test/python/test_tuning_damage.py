"""A damaged tuning database is found, moved aside or named."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tilewright
from tilewright.tuning.database import Database, Measurement, open_for_tuning
from tuning_cases import StubTimer, compile_rows, cut, damaged, decision, foreign, halves, tune


def _bad_row(path: Path) -> None:
    with Database(path) as kept:
        kept.keep_decision(decision())
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE decisions SET plan = '{'")


def _row_of_other_kinds(path: Path) -> None:
    with Database(path) as kept:
        kept.keep_decision(decision())
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE decisions SET seconds = 'quick', measured_at = x'ff'")


# Each kind of damage is named before a row is used.
@pytest.mark.parametrize("make", [damaged, _bad_row, _row_of_other_kinds])
def test_damage_is_found(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "db")
    with pytest.raises(tilewright.TuningError, match="is damaged"), Database(tmp_path / "db") as kept:
        kept.decision("key")


def _lost_pages(path: Path) -> None:
    """Overwrites all but the first pages of a database, as a crash of the machine may; it still opens."""
    with Database(path) as kept:
        for number in range(300):
            kept.keep_measurement("key", str(number), Measurement(seconds=None, problem="x" * 100))
    Database(path).close()
    path.write_bytes(path.read_bytes()[: 3 * 4096] + b"\xff" * (path.stat().st_size - 3 * 4096))


# Tuning needs a database to write; what is damaged is kept for the user.
@pytest.mark.parametrize("make", [damaged, _lost_pages])
def test_tuning_moves_a_damaged_database_aside(make: Callable[[Path], None], tmp_path: Path) -> None:
    for aside in ("db.damaged", "db.damaged1"):
        make(tmp_path / "db")
        kept, note = open_for_tuning(tmp_path / "db")
        kept.keep_decision(decision())
        kept.close()
        assert aside in note
        assert (tmp_path / aside).exists()
        (tmp_path / "db").unlink()


_READS = """
import sys
from pathlib import Path
from tilewright import TuningError
from tilewright.tuning.database import Database, open_for_tuning
for opens in (Database, open_for_tuning):
    try:
        opened = opens(Path(sys.argv[1]))
        print(len(opened.decisions()))
    except TuningError as error:
        print(error.message)
"""


def _read_where_nothing_can_be_written(path: Path) -> list[str]:
    """Checks what a process without write access to the folder finds in a database, and what tuning does there."""
    command = [sys.executable, "-c", _READS, str(path)]
    if os.geteuid() == 0:
        if not (setpriv := shutil.which("setpriv")):
            pytest.skip("root may write everywhere, and there is no setpriv")
        command = [setpriv, "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *command]
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    finally:
        path.parent.chmod(0o755)


# Decisions may lie where a user cannot write.
def test_a_read_only_database_is_read(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as kept:
        kept.keep_decision(decision())
    assert _read_where_nothing_can_be_written(tmp_path / "db") == ["1", "is read-only"]


def test_what_was_written_last_is_never_passed_over(tmp_path: Path) -> None:
    """The last writes may be in a log that only a process with write access can merge."""
    with Database(tmp_path / "db") as kept:
        kept.keep_decision(decision())
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("db", "db-wal"):
            (copy / name).write_bytes((tmp_path / name).read_bytes())
    assert all("cannot be used" in line for line in _read_where_nothing_can_be_written(copy / "db"))


# One bad row costs one tuning.
def test_tuning_replaces_a_row_that_it_cannot_read(rows_path: Path, tuned: Path, tmp_path: Path) -> None:
    with Database(tuned) as kept:
        kept.export(tmp_path / "db")
    with sqlite3.connect(tmp_path / "db") as raw:
        raw.execute("UPDATE decisions SET plan = '{'")
    tuning = tune(rows_path, tmp_path / "db", StubTimer(halves))
    assert tuning.notes == () and tuning.subprograms[0].is_new
    assert compile_rows(rows_path, database=tmp_path / "db").kernels[0].measured


# A file of another program that was named by mistake stays as it is.
def test_tuning_leaves_a_foreign_database_alone(rows_path: Path, tmp_path: Path) -> None:
    foreign(tmp_path / "db")
    with pytest.raises(tilewright.TuningError, match="is not a tuning database; name another file"):
        tune(rows_path, tmp_path / "db", StubTimer(cut))
    assert [path.name for path in tmp_path.iterdir()] == ["db"]


# This machine's clock says nothing about a GPU; the error names the way that does.
def test_a_gpu_is_not_tuned(rows_path: Path, tmp_path: Path) -> None:
    with pytest.raises(
        tilewright.TuningError, match="h200 is a GPU; its kernels are timed on a machine with it"
    ):
        tilewright.tune(rows_path, "cuda:h200", database=tmp_path / "db")


# The user's own database may not exist yet, but a path that was given must.
def test_missing_database_is_an_error_only_where_it_was_named(rows_path: Path, tmp_path: Path) -> None:
    with pytest.raises(tilewright.TuningError, match="no such file"):
        compile_rows(rows_path, database=tmp_path / "none")
    assert compile_rows(rows_path, database=True).metadata.notes == ()
