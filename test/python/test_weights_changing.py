"""A program whose files change while it uses them runs with its own weights or fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tilewright
from saved_programs import (
    SCOPES,
    WEIGHTS_THEMSELVES,
    Case,
    Scopes,
    files_of,
    flip,
)
from tilewright.runtime import held
from tilewright.runtime.held import PIECE_BYTES, TICK_NS, HeldFile


def test_weights_that_shrink_are_an_error_and_not_the_end(large: Case, tmp_path: Path) -> None:
    saved = large.program.save(tmp_path / "product.vmfb")
    code = """
import os, sys, numpy as np, tilewright
program = tilewright.load(sys.argv[1])
x = np.ones(program.signature.inputs[0].shape, np.float32)
before = program(x)[0]
for size in (100_000, 0):
    os.truncate(sys.argv[1].replace("vmfb", "irpa"), size)
    try:
        program(x)
    except tilewright.ProgramError as error:
        print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    for line, size in zip(ran.stdout.splitlines(), (100_000, 0), strict=True):
        assert (
            f"product.irpa: it was changed while a program was using it: it has {size} bytes instead of"
            in line
        )
        assert "; load the program again, and replace its files by renaming" in line


def test_small_files_may_change_as_they_like(small: Case, tmp_path: Path) -> None:
    saved = small.program.save(tmp_path / "product.vmfb")
    loaded = tilewright.load(saved)
    for path in files_of(saved):
        path.write_bytes(b"")
    small.check(loaded)
    small.check(tilewright.load(loaded.save(tmp_path / "again.vmfb")))


def test_mapped_weights_that_are_written_into_are_not_computed_with(
    large: Case, other_large: Case, tmp_path: Path
) -> None:
    saved, theirs = (
        large.program.save(tmp_path / "mine.vmfb"),
        other_large.program.save(tmp_path / "theirs.vmfb"),
    )
    loaded = tilewright.load(saved)
    large.check(loaded)
    before = saved.with_suffix(".irpa").stat()
    shutil.copyfile(theirs.with_suffix(".irpa"), saved.with_suffix(".irpa"))
    # Some copies preserve times, so the modification time does not show the change.
    os.utime(saved.with_suffix(".irpa"), ns=(before.st_atime_ns, before.st_mtime_ns))
    changed = r"mine\.irpa: it was changed while a program was using it: its content hash is \w{12}\.\.\. instead of"
    with pytest.raises(tilewright.ProgramError, match=changed):
        loaded(large.x)
    with pytest.raises(tilewright.ProgramError, match=changed):
        loaded.save(tmp_path / "again.vmfb")
    assert not list(tmp_path.glob("*again*"))


def test_a_file_is_older_than_a_tick_of_its_clock_when_its_state_is_taken(tmp_path: Path) -> None:
    """Otherwise, a change right afterwards might leave its times unchanged."""
    path = tmp_path / "weights.irpa"
    path.write_bytes(bytes(PIECE_BYTES + 1))
    file = HeldFile(path, may_map=True)
    assert time.time_ns() >= path.stat().st_ctime_ns + TICK_NS
    file.check()
    flip(path, PIECE_BYTES // 2)
    with pytest.raises(tilewright.ProgramError, match=r"weights\.irpa: it was changed"):
        file.check()


def test_what_changes_during_a_call_does_not_become_a_result(
    large: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = large.program.save(tmp_path / "product.vmfb")
    call = tilewright.load(saved).bind(large.x)
    check = HeldFile.check

    def check_and_change(file: HeldFile) -> None:
        check(file)
        flip(file.path, file.size - 1)

    monkeypatch.setattr(HeldFile, "check", check_and_change)
    with pytest.raises(tilewright.ProgramError, match="was changed while a program was using it"):
        call()


def test_a_file_whose_content_stays_may_be_touched_renamed_and_deleted(large: Case, tmp_path: Path) -> None:
    weights = large.program.save(tmp_path / "product.vmfb").with_suffix(".irpa")
    loaded = tilewright.load(tmp_path / "product.vmfb")
    for change in (
        lambda: os.utime(weights),
        lambda: weights.write_bytes(weights.read_bytes()),
        lambda: weights.chmod(0o400),
        lambda: weights.rename(tmp_path / "gone"),
        lambda: (tmp_path / "gone").unlink(),
    ):
        change()
        large.check(loaded)


def test_a_save_over_a_loaded_program_leaves_it_its_weights(saved: Path, case: Case, other: Case) -> None:
    loaded = tilewright.load(saved)
    other.program.save(saved)
    case.check(loaded)
    other.check(tilewright.load(saved))


def test_a_program_whose_files_were_replaced_saves_its_own(
    saved: Path, case: Case, other: Case, tmp_path: Path
) -> None:
    loaded = tilewright.load(saved)
    other.program.save(saved)
    case.check(tilewright.load(loaded.save(tmp_path / "again.vmfb")))


def test_a_large_module_may_change_as_it_likes(
    small: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IREE also reads a module while unloading it, so modules are never mapped."""
    monkeypatch.setattr(held, "PIECE_BYTES", 1000)
    saved = small.program.save(tmp_path / "product.vmfb")
    loaded = tilewright.load(saved)
    os.truncate(saved, 0)
    small.check(loaded)


def test_a_parameter_file_of_the_user_that_changes_is_an_error(
    scopes: Scopes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its expected content is unknown, so a modified time stamp is an error."""
    monkeypatch.setattr(held, "PIECE_BYTES", 1000)
    program = tilewright.compile(WEIGHTS_THEMSELVES, threads=1, parameters=scopes.given)
    assert program.parameter_paths == scopes.given
    for result, scope in zip(program(), SCOPES, strict=True):
        np.testing.assert_array_equal(result, scopes.weights[scope])
    left, _ = scopes.given.values()
    flip(left, left.stat().st_size - 1)
    with pytest.raises(
        tilewright.ProgramError, match=r"given-0\.irpa: it was changed while a program was using it;"
    ):
        program()
