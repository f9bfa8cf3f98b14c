"""A save that does not finish leaves the earlier program, the new one, or an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tilewright
from saved_programs import (
    Case,
    Scopes,
    files_of,
)


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("renames", [0, 1, 2, 3])
def test_a_save_that_is_killed_leaves_the_old_the_new_or_an_error(
    saved: Path, case: Case, other: Case, tmp_path: Path, renames: int
) -> None:
    source = other.program.save(tmp_path / "new.vmfb")
    code = """
import os, signal, sys, tilewright
from pathlib import Path
left, replace = int(sys.argv[3]), Path.replace
def counted(path, target):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return replace(path, target)
Path.replace = counted
tilewright.load(sys.argv[1]).save(sys.argv[2])
"""
    command = [sys.executable, "-c", code, str(source), str(saved), str(renames)]
    ran = subprocess.run(command, check=False)
    assert ran.returncode == (0 if renames == 3 else -signal.SIGKILL)
    if renames == 0:
        case.check(tilewright.load(saved))
    elif renames == 3:
        other.check(tilewright.load(saved))
    else:
        with pytest.raises(tilewright.ProgramError, match="truncated, changed or replaced"):
            tilewright.load(saved)


def test_saves_of_two_processes_do_not_mix(small: Case, other_small: Case, tmp_path: Path) -> None:
    source, target = small.program.save(tmp_path / "source.vmfb"), tmp_path / "product.vmfb"
    code = """
import sys, time, tilewright
from pathlib import Path
replace = Path.replace
def slow(path, target):
    replace(path, target)
    print("renamed", flush=True)
    time.sleep(0.3)
Path.replace = slow
tilewright.load(sys.argv[1]).save(sys.argv[2])
"""
    command = [sys.executable, "-c", code, str(source), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "renamed\n"
        other_small.program.save(target)
    assert process.returncode == 0
    other_small.check(tilewright.load(target))


def test_what_a_killed_save_left_goes_with_the_next(small: Case, tmp_path: Path) -> None:
    left, other = tmp_path / ".product.irpa.abc.tmp", tmp_path / ".product.v2.irpa.abc.tmp"
    for path in (left, other):
        path.touch()
        os.utime(path, (time.time() - 3600,) * 2)
    small.program.save(tmp_path / "product.vmfb")
    assert not left.exists() and other.exists()
    left.touch()
    small.program.save(tmp_path / "product.vmfb")
    assert left.exists(), "another process may have just begun to write it"


def test_a_name_that_is_too_long_for_the_weights_is_an_error(scopes: Scopes, tmp_path: Path) -> None:
    with pytest.raises(tilewright.OutputError, match=r"cannot be written \(File name too long\)"):
        scopes.program.save(tmp_path / f"{'n' * 240}.vmfb")
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


def test_a_file_in_the_way_leaves_the_others_as_they_were(saved: Path, case: Case, other: Case) -> None:
    before = [path.read_bytes() for path in files_of(saved)[:2]]
    saved.with_suffix(".json").unlink()
    saved.with_suffix(".json").mkdir()
    with pytest.raises(tilewright.OutputError, match=r"product\.json: is a folder"):
        other.program.save(saved)
    assert [path.read_bytes() for path in files_of(saved)[:2]] == before
