"""Tuning: measurements are stored, found again, used and shown, and never prevent a compilation. No test depends on
a clock."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
import tilewright
from click.testing import CliRunner
from tilewright import Module, Plan, Target
from tilewright.cli.main import cli
from tilewright.pipelines import nested, pass_text, pipeline
from tilewright.tuning import lookup
from tilewright.tuning.database import Database, Decision, Measurement, open_for_tuning
from tilewright.tuning.subprograms import Setting
from tilewright.tuning.timer import Build, ProcessTimer, TimingError
from tilewright.tuning.tuner import BURSTS

Rank = Callable[[Plan], float]

_TARGET = Target.lookup("x86-64-avx2")


class StubTimer:
    """A timer whose seconds are a function of the plan. It counts its requests and may be interrupted."""

    def __init__(self, rank: Rank, *, interrupt_at: int | None = None) -> None:
        self._rank, self._interrupt_at = rank, interrupt_at
        self.asked: list[str] = []

    def __enter__(self) -> StubTimer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def seconds(self, build: Build) -> float:
        if len(self.asked) == self._interrupt_at:
            raise KeyboardInterrupt
        self.asked.append(build.candidate)
        return self._rank(Plan.load(build.folder / "plan.json"))


def halves(plan: Plan) -> float:
    """Prefers plans of one kernel that cut the rows into two tiles."""
    part = plan.kernels[0].groups[0]
    return 1e-3 if len(plan.kernels) == 1 and 2 * part.tiles[0] == part.extents[0] else 2e-3


def cut(plan: Plan) -> float:
    return 1e-3 / len(plan.kernels)


def _tune(model: Path, database: Path, timer: StubTimer, *, candidates: int = 6) -> tilewright.Tuning:
    return tilewright.tune(
        model, _TARGET, threads=[2], database=database, candidates=candidates, jobs=1, timer=timer
    )


def _compile(model: Path, *, database: Path | bool) -> tilewright.Program:
    return tilewright.compile(model, _TARGET, threads=[2], tuning=database)


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
    path = tmp_path_factory.mktemp("tuned") / "tuning.db"
    _tune(rows_path, path, StubTimer(halves))
    return path


# Keys of decisions


_LAYERS = """
func.func @layers(%x: tensor<{rows}x53x{type}>, %w: tensor<53x53x{type}>) -> tensor<{rows}x53x{type}> {{
  %zero = arith.constant 0.0 : {type}
  %e = tensor.empty() : tensor<{rows}x53x{type}>
  %f = linalg.fill ins(%zero : {type}) outs(%e : tensor<{rows}x53x{type}>) -> tensor<{rows}x53x{type}>
  %p = linalg.matmul ins(%x, %w : tensor<{rows}x53x{type}>, tensor<53x53x{type}>)
                     outs(%f : tensor<{rows}x53x{type}>) -> tensor<{rows}x53x{type}> loc("first")
  %b = "other.barrier"(%p) : (tensor<{rows}x53x{type}>) -> tensor<{rows}x53x{type}>
  %q = linalg.matmul ins(%b, %w : tensor<{rows}x53x{type}>, tensor<53x53x{type}>)
                     outs(%f : tensor<{rows}x53x{type}>) -> tensor<{rows}x53x{type}> loc("second")
  return %q : tensor<{rows}x53x{type}>
}}
"""


def _keys(folder: Path, *, rows: int = 37, kind: str = "f32", target: Target = _TARGET) -> list[str]:
    output, file = folder / "subprograms.json", folder / "target.json"
    target.save(file)
    passes = pipeline(
        nested("func.func", "tile-normalize"),
        pass_text("tile-print-subprograms", {"target": str(file), "output": str(output)}),
    )
    Module.parse(_LAYERS.format(rows=rows, type=kind)).run(passes)
    setting = Setting(target=target, numerics="default")
    return [setting.key(item["form"]) for item in json.loads(output.read_text())["subprograms"]]


def test_repeated_layers_have_one_key(tmp_path: Path) -> None:
    first, second = _keys(tmp_path)
    assert first == second


@pytest.mark.parametrize(
    "other", [{"rows": 41}, {"kind": "f64"}, {"target": replace(_TARGET, block_bytes=1 << 16)}]
)
def test_other_shapes_types_and_targets_have_other_keys(other: dict[str, Any], tmp_path: Path) -> None:
    assert not set(_keys(tmp_path)) & set(_keys(tmp_path, **other))


def test_other_numerics_and_versions_have_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(target=_TARGET, numerics="default")
    key = setting.key("form")
    assert replace(setting, numerics="strict").key("form") != key
    monkeypatch.setattr("tilewright.tuning.subprograms.package_version", lambda: "another")
    assert setting.key("form") != key


# Tuning, and compiling with its decisions


def test_decision_changes_the_plan_and_is_shown(rows_path: Path, tuned: Path, tmp_path: Path) -> None:
    plain, program = _compile(rows_path, database=False), _compile(rows_path, database=tuned)
    assert plain.plan is not None and program.plan is not None
    assert plain.plan.kernels[0].groups[0].tiles[0] < 32
    assert program.plan.kernels[0].groups[0].tiles[0] == 32
    assert program.metadata.notes == ()
    [measured] = program.kernels[0].measured
    assert measured.ratio == pytest.approx(0.5, rel=0.01)
    assert measured.seconds == pytest.approx(1e-3, rel=0.01)
    assert "measured: " in program.explain() and "0.50 [0.50, 0.50] of the unmeasured" in program.explain()
    assert "measured" not in plain.explain()
    program.save(tmp_path / "rows.vmfb")
    assert tilewright.load(tmp_path / "rows.vmfb").kernels[0].measured == (measured,)
    x = np.random.default_rng(0).standard_normal((64, 100)).astype(np.float32)
    np.testing.assert_allclose(program(x)[0], plain(x)[0], rtol=1e-5)


def test_other_threads_do_not_use_it(rows_path: Path, tuned: Path) -> None:
    program = tilewright.compile(rows_path, _TARGET, threads=1, tuning=tuned)
    assert program.kernels[0].measured == ()


def test_unmeasured_plan_stays_where_nothing_is_faster(rows_path: Path, tmp_path: Path) -> None:
    tuning = _tune(rows_path, tmp_path / "db", StubTimer(lambda plan: 1e-3))
    [one] = tuning.subprograms
    assert (one.decision.ratio, one.decision.is_fused) == (1.0, True)
    plain, program = _compile(rows_path, database=False), _compile(rows_path, database=tmp_path / "db")
    assert plain.plan is not None and program.plan is not None
    assert plain.plan.kernels[0].groups == program.plan.kernels[0].groups
    assert "the unmeasured plan won" in program.explain()


def test_subprogram_may_be_cut_and_repeated_layers_are_tuned_once(tmp_path: Path) -> None:
    """Every kernel is cut into several, in a model with packed kernels, whose groups stay together; results stay
    right."""
    from tilewright.reference.oracle import float64_reference, random_inputs, relative_error

    from benchmarks.workloads import BertOptions, bert

    model = bert(BertOptions(layers=3, hidden=32, heads=2, sequence=8, intermediate=64))
    onnx.save(model, tmp_path / "bert.onnx")
    tuning = _tune(tmp_path / "bert.onnx", tmp_path / "db", StubTimer(cut), candidates=2)
    assert max(one.count for one in tuning.subprograms) >= 2
    assert len({one.decision.key for one in tuning.subprograms}) == len(tuning.subprograms)
    plain, program = (
        _compile(tmp_path / "bert.onnx", database=database) for database in (False, tmp_path / "db")
    )
    assert len(program.kernels) > len(plain.kernels)
    assert program.metadata.notes == ()
    inputs = random_inputs(model, 0)
    for actual, expected in zip(program(*inputs), float64_reference(model, inputs), strict=True):
        assert relative_error(actual, expected) < 1e-5


def test_interrupted_tuning_goes_on_where_it_stopped(rows_path: Path, tmp_path: Path) -> None:
    whole = StubTimer(halves)
    _tune(rows_path, tmp_path / "whole", whole)
    first, second = StubTimer(halves, interrupt_at=10), StubTimer(halves)
    with pytest.raises(KeyboardInterrupt):
        _tune(rows_path, tmp_path / "db", first)
    with Database(tmp_path / "db") as kept:
        assert kept.decisions() == []
    tuning = _tune(rows_path, tmp_path / "db", second)
    # Finished work is not repeated; the plan that was interrupted starts again.
    done = len(first.asked) // BURSTS * BURSTS
    assert 0 < done < len(first.asked)
    assert len(second.asked) == len(whole.asked) - done
    assert tuning.subprograms[0].is_new
    third = StubTimer(halves)
    again = _tune(rows_path, tmp_path / "db", third)
    assert third.asked == [] and not again.subprograms[0].is_new
    assert again.subprograms[0].decision == tuning.subprograms[0].decision


def test_hopeless_plans_are_timed_once(rows_path: Path, tmp_path: Path) -> None:
    """The unmeasured plan is timed first, and all others take ten times as long."""
    plan = _compile(rows_path, database=False).plan
    assert plan is not None
    own = plan.kernels[0].groups[0].tiles

    def rank(plan: Plan) -> float:
        return 1e-3 if len(plan.kernels) == 1 and plan.kernels[0].groups[0].tiles == own else 1e-2

    timer = StubTimer(rank)
    tuning = _tune(rows_path, tmp_path / "db", timer, candidates=12)
    assert tuning.subprograms[0].decision.ratio == 1
    counts = Counter(timer.asked)
    assert timer.asked[:BURSTS] == [timer.asked[0]] * BURSTS
    assert counts.most_common()[-1][1] == 1


def test_plan_that_does_not_run_is_no_candidate(rows_path: Path, tmp_path: Path) -> None:
    def refuse(plan: Plan) -> float:
        if halves(plan) < 2e-3:
            raise TimingError("died")
        return 2e-3

    tuning = _tune(rows_path, tmp_path / "db", StubTimer(refuse))
    assert tuning.subprograms[0].decision.plan.kernels[0].groups[0].tiles[0] != 32
    with Database(tmp_path / "db") as kept:
        problems = {m.problem for m in kept.measurements(tuning.subprograms[0].decision.key).values()}
    assert problems == {"", "died"}


def test_clock_times_kernels(rows_path: Path, tmp_path: Path) -> None:
    tuning = tilewright.tune(rows_path, "cpu", threads=[2], database=tmp_path / "db", candidates=2, jobs=1)
    [one] = tuning.subprograms
    assert one.decision.seconds > 0 and one.decision.candidates == 2


def test_timer_survives_what_it_times(tmp_path: Path) -> None:
    with ProcessTimer(tmp_path, threads=1) as timer, pytest.raises(TimingError):
        timer.seconds(Build(folder=tmp_path, launches=[], candidate="none"))


# The database


def _decision(key: str = "key", *, at: str = "2026-01-01T00:00:00+00:00", ratio: float = 0.5) -> Decision:
    return Decision(
        key=key,
        name="kernel",
        target=_TARGET.name,
        plan=Plan(target=_TARGET.name, policy="greedy"),
        seconds=1e-3,
        unmeasured_seconds=2e-3,
        unfused_seconds=None,
        ratio=ratio,
        ratio_low=ratio,
        ratio_high=ratio,
        candidates=3,
        machine="a machine",
        measured_at=at,
    )


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
            kept.keep_decision(_decision(f"{number}"))


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    _in_processes(_write_many, tmp_path / "db")
    with Database(tmp_path / "db") as kept:
        assert len(kept.measurements("shared")) == 150
        assert len(kept.decisions()) == 50


def _begin_many(folder: Path, _own: int, all_here: Barrier) -> None:
    for number in range(30):
        all_here.wait()
        Database(folder / f"{number}").close()


def test_several_processes_begin_at_once(tmp_path: Path) -> None:
    _in_processes(_begin_many, tmp_path)


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")


def _damaged(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)


def _bad_row(path: Path) -> None:
    with Database(path) as kept:
        kept.keep_decision(_decision())
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE decisions SET plan = '{'")


def _row_of_other_kinds(path: Path) -> None:
    with Database(path) as kept:
        kept.keep_decision(_decision())
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE decisions SET seconds = 'quick', measured_at = x'ff'")


def _newer(path: Path) -> None:
    Database(path).close()
    # Otherwise, Python's garbage collector decides when it is closed and its log removed.
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_foreign, "is not a tuning database"),
        (_damaged, "is damaged"),
        (_newer, "of version 99"),
    ],
)
def test_compilation_goes_on_without_a_database_it_cannot_use(
    make: Callable[[Path], None], reason: str, rows_path: Path, tmp_path: Path
) -> None:
    make(tmp_path / "db")
    names = sorted(path.name for path in tmp_path.iterdir())
    program = _compile(rows_path, database=tmp_path / "db")
    [note] = program.metadata.notes
    assert reason in note and str(tmp_path / "db") in note
    assert program.kernels
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_compilation_goes_on_without_a_locked_database(
    rows_path: Path, tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_WAIT_SECONDS", 0.05)
    with Database(tuned) as kept:
        kept.export(tmp_path / "db")
    holder = sqlite3.connect(tmp_path / "db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    [note] = _compile(rows_path, database=tmp_path / "db").metadata.notes
    assert "is locked by another process" in note
    holder.close()
    assert _compile(rows_path, database=tmp_path / "db").metadata.notes == ()


def test_compilation_goes_on_without_a_plan_that_does_not_fit(
    rows_path: Path, tuned: Path, tmp_path: Path
) -> None:
    with Database(tuned) as kept:
        kept.export(tmp_path / "db")
    with Database(tmp_path / "db") as kept:
        [decision] = kept.decisions()
        decision.plan.kernels[0].groups[0].tiles[0] = 10**6
        kept.keep_decision(decision)
    program = _compile(rows_path, database=tmp_path / "db")
    [note] = program.metadata.notes
    assert "does not fit" in note
    assert program.kernels[0].measured == ()


@pytest.mark.parametrize("make", [_damaged, _bad_row, _row_of_other_kinds])
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


@pytest.mark.parametrize("make", [_damaged, _lost_pages])
def test_tuning_moves_a_damaged_database_aside(make: Callable[[Path], None], tmp_path: Path) -> None:
    for aside in ("db.damaged", "db.damaged1"):
        make(tmp_path / "db")
        kept, note = open_for_tuning(tmp_path / "db")
        kept.keep_decision(_decision())
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


def test_a_read_only_database_is_read(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as kept:
        kept.keep_decision(_decision())
    assert _read_where_nothing_can_be_written(tmp_path / "db") == ["1", "is read-only"]


def test_what_was_written_last_is_never_passed_over(tmp_path: Path) -> None:
    """The last writes may be in a log that only a process with write access can merge."""
    with Database(tmp_path / "db") as kept:
        kept.keep_decision(_decision())
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("db", "db-wal"):
            (copy / name).write_bytes((tmp_path / name).read_bytes())
    assert all("cannot be used" in line for line in _read_where_nothing_can_be_written(copy / "db"))


def test_tuning_replaces_a_row_that_it_cannot_read(rows_path: Path, tuned: Path, tmp_path: Path) -> None:
    with Database(tuned) as kept:
        kept.export(tmp_path / "db")
    with sqlite3.connect(tmp_path / "db") as raw:
        raw.execute("UPDATE decisions SET plan = '{'")
    tuning = _tune(rows_path, tmp_path / "db", StubTimer(halves))
    assert tuning.notes == () and tuning.subprograms[0].is_new
    assert _compile(rows_path, database=tmp_path / "db").kernels[0].measured


def test_tuning_leaves_a_foreign_database_alone(rows_path: Path, tmp_path: Path) -> None:
    _foreign(tmp_path / "db")
    with pytest.raises(tilewright.TuningError, match="is not a tuning database; name another file"):
        _tune(rows_path, tmp_path / "db", StubTimer(cut))
    assert [path.name for path in tmp_path.iterdir()] == ["db"]


def test_a_gpu_is_not_tuned(rows_path: Path, tmp_path: Path) -> None:
    with pytest.raises(
        tilewright.TuningError, match="h200 is a GPU; its kernels are timed on a machine with it"
    ):
        tilewright.tune(rows_path, "cuda:h200", database=tmp_path / "db")


def test_missing_database_is_an_error_only_where_it_was_named(rows_path: Path, tmp_path: Path) -> None:
    with pytest.raises(tilewright.TuningError, match="no such file"):
        _compile(rows_path, database=tmp_path / "none")
    assert _compile(rows_path, database=True).metadata.notes == ()


# The command line


def _tuning(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, ["tuning", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_later_decisions_stay_when_files_are_joined(tmp_path: Path) -> None:
    with Database(tmp_path / "here") as here, Database(tmp_path / "there") as there:
        here.keep_decision(_decision("old here", at="2026-01-01"))
        here.keep_decision(_decision("new here", at="2026-01-03", ratio=0.25))
        there.keep_decision(_decision("old here", at="2026-01-02", ratio=0.75))
        there.keep_decision(_decision("new here", at="2026-01-02", ratio=0.75))
        there.keep_decision(_decision("only there", at="2026-01-02", ratio=0.75))
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
        kept.keep_decision(_decision())
    with Database(tmp_path / "db") as kept:
        assert kept.decision("key")


def test_export_does_not_replace_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with Database(tmp_path / "db") as kept, pytest.raises(tilewright.OutputError, match="device or a pipe"):
        kept.export(tmp_path / "pipe")


def test_export_names_what_it_cannot_write(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as kept, pytest.raises(tilewright.TuningError) as error:
        kept.export(tmp_path / "missing" / "file")
    assert str(error.value).startswith(f"{tmp_path / 'missing' / 'file'}: cannot be written")


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
        _tune(rows_path, tmp_path / "db", StubTimer(halves))
    with pytest.raises(tilewright.OutputError, match=r"No space left on device.*TMPDIR"):
        _compile(rows_path, database=False)


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
