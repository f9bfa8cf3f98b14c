"""Files of decisions and the command line of tuning."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import Mock

import onnx
import pytest
import tilewright
from click.testing import CliRunner
from tilewright.cli.main import cli
from tilewright.tuning.database import Database
from tuning_cases import StubTimer, compile_rows, decision, halves, tune


@pytest.fixture(scope="module")
def rows_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A softmax of 64 rows, for which the unmeasured plan has tiles of fewer than 32 rows."""
    from benchmarks.workloads import stitch

    path = tmp_path_factory.mktemp("rows") / "rows.onnx"
    onnx.save(stitch.softmax((64, 100)), path)
    return path


def _tuning(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, ["tuning", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


# Of two decisions on one subprogram the newer counts, wherever it was made.
def test_later_decisions_stay_when_files_are_joined(tmp_path: Path) -> None:
    with Database(tmp_path / "here") as here, Database(tmp_path / "there") as there:
        here.keep_decision(decision("old here", at="2026-01-01"))
        here.keep_decision(decision("new here", at="2026-01-03", ratio=0.25))
        there.keep_decision(decision("old here", at="2026-01-02", ratio=0.75))
        there.keep_decision(decision("new here", at="2026-01-02", ratio=0.75))
        there.keep_decision(decision("only there", at="2026-01-02", ratio=0.75))
    assert "3 decisions" in _tuning("export", tmp_path / "file", "--database", tmp_path / "there")
    assert "2 decisions added" in _tuning("import", tmp_path / "file", "--database", tmp_path / "here")
    with Database(tmp_path / "here") as here:
        assert {d.key: d.ratio for d in here.decisions()} == {
            "old here": 0.75,
            "new here": 0.25,
            "only there": 0.75,
        }
    listed = _tuning("list", "--database", tmp_path / "here").splitlines()
    assert len(listed) == 3 and listed[0].startswith("new here")


def test_export_leaves_the_database_where_it_is(tmp_path: Path) -> None:
    """Other processes may have the database open and would write to a deleted file."""
    with Database(tmp_path / "db") as kept:
        with pytest.raises(tilewright.TuningError, match="db: is the database itself"):
            kept.export(tmp_path / "db")
        kept.keep_decision(decision())
    with Database(tmp_path / "db") as kept:
        assert kept.decision("key")


# Renaming over a pipe or device would destroy it.
def test_export_does_not_replace_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with Database(tmp_path / "db") as kept, pytest.raises(tilewright.OutputError, match="device or a pipe"):
        kept.export(tmp_path / "pipe")


# The error names the file.
def test_export_names_what_it_cannot_write(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as kept, pytest.raises(tilewright.TuningError) as error:
        kept.export(tmp_path / "missing" / "file")
    assert str(error.value).startswith(f"{tmp_path / 'missing' / 'file'}: cannot be written")


# SQLite takes an empty file for an empty database; an import from one is a mistake.
def test_an_empty_file_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(
        cli, ["tuning", "import", str(tmp_path / "file"), "--database", str(tmp_path / "db")]
    )
    assert result.exit_code == 1
    assert "file: is empty" in result.output
    assert not (tmp_path / "file").read_bytes()


def test_a_full_disk_is_named(rows_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM ends its process if it cannot write."""
    monkeypatch.setattr("tilewright.worker.process.read_message", lambda stream: None)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Mock(free=0))
    with pytest.raises(tilewright.OutputError, match=r"No space left on device.*TMPDIR"):
        tune(rows_path, tmp_path / "db", StubTimer(halves))
    with pytest.raises(tilewright.OutputError, match=r"No space left on device.*TMPDIR"):
        compile_rows(rows_path, database=False)


def test_command_tunes_and_compile_uses_it(
    rows_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names the database for both."""
    monkeypatch.setenv("TILEWRIGHT_TUNING", str(tmp_path / "mine.db"))
    arguments = ["--threads", "1", "--candidates", "2", "--jobs", "1"]
    result = CliRunner().invoke(cli, ["tune", str(rows_path), *arguments])
    assert result.exit_code == 0, result.output
    assert "of the unmeasured plan" in result.output and "mine.db" in result.output
    result = CliRunner().invoke(cli, ["explain", str(rows_path), "--threads", "1"])
    assert "measured: " in result.output
    result = CliRunner().invoke(cli, ["explain", str(rows_path), "--threads", "1", "--no-tuning"])
    assert "measured: " not in result.output
