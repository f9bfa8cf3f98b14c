"""A saved program finds its own weights, wherever its files are moved."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tilewright
from saved_programs import (
    Case,
    copy_to,
    files_of,
    run_stock,
)


def test_a_copy_under_another_name_reads_its_own_weights(saved: Path, case: Case, other: Case) -> None:
    copy = copy_to(saved, saved.parent, "copy")
    other.program.save(saved)
    loaded = tilewright.load(copy)
    case.check(loaded)
    assert loaded.parameter_paths["model"] == copy.with_suffix(".irpa")
    other.check(tilewright.load(saved))


def test_a_copy_without_weights_does_not_take_those_of_the_original(saved: Path) -> None:
    copy = copy_to(saved, saved.parent, "copy")
    copy.with_suffix(".irpa").unlink()
    with pytest.raises(tilewright.ProgramError, match=r"copy\.irpa: the program's weights are missing"):
        tilewright.load(copy)


def test_renamed_files_load(saved: Path, case: Case) -> None:
    for path in files_of(saved):
        path.rename(path.with_stem("renamed.v2"))
    case.check(tilewright.load(saved.with_stem("renamed.v2")))


def test_a_moved_folder_loads(saved: Path, case: Case, tmp_path: Path) -> None:
    saved.parent.rename(tmp_path / "elsewhere")
    case.check(tilewright.load(tmp_path / "elsewhere" / saved.name))


def test_a_relative_path_holds_when_the_folder_changes(
    saved: Path, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    loaded = tilewright.load(saved.name)
    monkeypatch.chdir(tmp_path)
    case.check(loaded)
    assert loaded.module_path == saved and loaded.parameter_paths == {"model": saved.with_suffix(".irpa")}
    case.check(tilewright.load(loaded.save("again.vmfb")))


def test_a_link_to_a_module_finds_what_lies_beside_the_module(
    saved: Path, case: Case, tmp_path: Path
) -> None:
    link = tmp_path / "current.vmfb"
    link.symlink_to(saved.relative_to(tmp_path))
    case.check(tilewright.load(link))


def test_what_lies_beside_a_link_comes_first(saved: Path, case: Case, other: Case, tmp_path: Path) -> None:
    """The module is a link into a store that names files by their content."""
    store, names = tmp_path / "store", tmp_path / "names"
    names.mkdir()
    for program, stem in ((case.program, "mine"), (other.program, "theirs")):
        for path in files_of(program.save(saved)):
            store.mkdir(exist_ok=True)
            blob = store / hashlib.sha256(path.read_bytes()).hexdigest()
            shutil.copy(path, blob)
            (names / f"{stem}{path.suffix}").symlink_to(blob)
    case.check(tilewright.load(names / "mine.vmfb"))
    other.check(tilewright.load(names / "theirs.vmfb"))


def test_loading_writes_nothing(saved: Path, case: Case) -> None:
    before = [(path, path.stat().st_mtime_ns) for path in sorted(saved.parent.iterdir())]
    saved.parent.chmod(0o555)
    try:
        case.check(tilewright.load(saved))
    finally:
        saved.parent.chmod(0o755)
    assert [(path, path.stat().st_mtime_ns) for path in sorted(saved.parent.iterdir())] == before


def test_iree_run_module_runs_a_copy_under_another_name(saved: Path, case: Case, tmp_path: Path) -> None:
    copy = copy_to(saved, tmp_path / "copies", "copy")
    shutil.rmtree(saved.parent)
    weights = {"model": copy.with_suffix(".irpa")}
    (y,) = run_stock(copy, weights, case.x, tmp_path, outputs=1)
    np.testing.assert_array_equal(y, tilewright.load(copy)(case.x)[0])


def test_explain_and_run_take_a_copy_under_another_name(saved: Path, tmp_path: Path) -> None:
    copy = copy_to(saved, tmp_path / "copies", "copy")
    shutil.rmtree(saved.parent)
    for command in ("explain", "run"):
        ran = subprocess.run(
            [sys.executable, "-m", "tilewright", command, copy.name],
            cwd=copy.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
    copy.with_suffix(".irpa").write_bytes(bytes(copy.with_suffix(".irpa").stat().st_size))
    assert "it does not contain the weights of copy.vmfb" in subprocess.run(
        [sys.executable, "-m", "tilewright", "run", str(copy)], capture_output=True, text=True, check=False
    ).stderr  # fmt: skip
