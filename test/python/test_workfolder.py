"""Folders for intermediate files are cleaned up, but never while they are in use."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tilewright.system.workfolder import MOST_KEPT, WorkFolder, failure_folder, sweep

_OWNER = """
import sys, threading
from tilewright.system.workfolder import WorkFolder
folder = WorkFolder("owned")
(folder.path / "file").write_text("in use")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder for one test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path


def _owner() -> tuple[subprocess.Popen[str], Path]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_nothing_stays(temporary: Path) -> None:
    with WorkFolder("one") as first, WorkFolder("two") as second:
        (first / "file").touch()
        assert first.is_dir() and second.is_dir()
    assert list(temporary.iterdir()) == []


def test_a_folder_goes_with_its_object(temporary: Path) -> None:
    folder = WorkFolder("one")
    del folder
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_nothing_stays_when_the_process_ends(temporary: Path) -> None:
    process, path = _owner()
    assert path.is_dir()
    process.communicate()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_swept_at_the_next_start(temporary: Path) -> None:
    process, path = _owner()
    process.kill()
    process.communicate()
    assert (path / "file").exists()
    with WorkFolder("next"):
        assert not path.exists()


def test_a_folder_in_use_is_not_swept(temporary: Path) -> None:
    process, path = _owner()
    with WorkFolder("here") as own:
        sweep(temporary)
        assert (path / "file").read_text() == "in use"
        assert own.is_dir()
    process.communicate()


def test_sweeping_follows_no_links_and_takes_nothing_of_others(temporary: Path) -> None:
    precious = temporary / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (temporary / "tilewright-work-link").symlink_to(precious, target_is_directory=True)
    (temporary / "tilewright-work-file").touch()
    left = temporary / "tilewright-work-left"
    left.mkdir()
    (left / "link").symlink_to(precious, target_is_directory=True)
    sweep(temporary)
    assert not left.exists()
    assert sorted(path.name for path in temporary.iterdir()) == [
        "precious",
        "tilewright-work-file",
        "tilewright-work-link",
    ]
    assert (precious / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's folder")
def test_folders_of_other_users_stay(temporary: Path) -> None:
    other = temporary / "tilewright-work-other"
    other.mkdir()
    os.chown(other, 12345, 12345)
    sweep(temporary)
    assert other.is_dir()


def test_processes_that_start_at_once_keep_their_folders(temporary: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        owners = list(pool.map(lambda _: _owner(), range(8)))
    assert all((path / "file").read_text() == "in use" for _, path in owners)
    for process, _ in owners:
        process.communicate()
    assert list(temporary.iterdir()) == []


def test_threads_have_a_folder_each(temporary: Path) -> None:
    def work(number: int) -> bool:
        with WorkFolder("thread") as folder:
            (folder / "file").write_text(str(number))
            return (folder / "file").read_text() == str(number)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))
    assert list(temporary.iterdir()) == []


def test_a_fork_removes_nothing_of_its_parents(temporary: Path) -> None:
    code = _OWNER.replace("sys.stdin", "import os\nif os.fork() == 0:\n    sys.exit()\nos.wait()\nsys.stdin")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script = code + "\nprint((folder.path / 'file').read_text())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "in use"


def test_a_new_home_is_made_where_someone_cleared_the_old(temporary: Path) -> None:
    first = WorkFolder("first")
    subprocess.run(["rm", "-r", str(first.path.parent)], check=True)
    with WorkFolder("second") as second:
        assert second.is_dir()
        first.cleanup()
        assert second.is_dir()
    assert list(temporary.iterdir()) == []


def test_of_failures_a_bounded_number_stays(temporary: Path) -> None:
    made = []
    for number in range(MOST_KEPT + 3):
        made.append(failure_folder())
        os.utime(made[-1], (number, number))
    # The newest folder is made before its time is set, so the test counts the rest and checks that the oldest are gone.
    assert len(list(temporary.iterdir())) == MOST_KEPT
    assert not any(folder.exists() for folder in made[:3])
    assert made[-1].is_dir()
