"""Folders for intermediate files, of which none stays behind for long, however a process ends.

All of a process's working folders are in one folder that it holds locked (flock). The lock goes with the process, also
by SIGKILL, and what lies there unlocked is swept when the next process makes its first working folder. A folder that is
kept for the user, say with what reproduces a failure, is one of a bounded number, of which the oldest makes room.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MOST_KEPT = 8
"""Folders with what reproduces a failure that stay in the temporary folder."""

_PREFIX, _FAILURE_PREFIX = "tilewright-work-", "tilewright-failed-"


class WorkFolder:
    """A folder that goes with this object, with its `with`, or with the process, whichever is first.

    `kind` is part of its name, for whoever looks into the temporary folder.
    """

    def __init__(self, kind: str) -> None:
        self.path = _make(kind)
        # A fork of this process has a copy of the object, but the folder is not its to remove.
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def cleanup(self) -> None:
        """Removes the folder; nothing if it is gone."""
        self._remove()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def __repr__(self) -> str:
        return f"<tilewright.system.workfolder.WorkFolder {self.path}>"


def failure_folder() -> Path:
    """A new folder for what reproduces a failure; it stays, and the oldest go until `MOST_KEPT` are left."""
    made = Path(tempfile.mkdtemp(prefix=_FAILURE_PREFIX))
    others = [folder for folder in _own_folders(made.parent, _FAILURE_PREFIX) if folder != made]
    for old in _by_age(others)[MOST_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    return made


def is_kept(command: str) -> bool:
    """Whether a command reads what is in a `failure_folder`."""
    return _FAILURE_PREFIX in command


def sweep(temporary: Path) -> None:
    """Removes the folders of processes of this user that have ended without doing it."""
    for folder in _own_folders(temporary, _PREFIX):
        with _locked(folder) as lock:
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)


class _Home:
    """The folder of this process in one temporary folder, and its lock; empty, it is removed."""

    def __init__(self, temporary: str) -> None:
        self.count = 0
        sweep(Path(temporary))
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=temporary))
            self.lock = _lock(self.path)
            # Between the two steps, another process may have swept it.
            if self.lock is not None and _is_at(self.lock, self.path):
                return
            self.close()

    def close(self) -> None:
        with suppress(OSError):
            self.path.rmdir()
        if self.lock is not None and self.lock >= 0:
            os.close(self.lock)
        self.lock = None


_homes: dict[str, _Home] = {}
_making = threading.RLock()
"""Reentrant, because garbage may be collected, and its folders with it, while one is made."""


def _make(kind: str) -> Path:
    temporary = tempfile.gettempdir()
    with _making:
        while True:
            home = _homes.get(temporary)
            if home is None:
                home = _homes[temporary] = _Home(temporary)
            home.count += 1
            try:
                return Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=home.path))
            except FileNotFoundError:
                # Whoever clears the temporary folder has taken it. A new one is made, or that fails, too.
                if _homes.get(temporary) is home:
                    del _homes[temporary]
                home.close()
            except BaseException:
                home.count -= 1
                raise


def _forget_homes() -> None:
    """A fork has no part in its parent's folders."""
    global _making
    _making = threading.RLock()
    for home in _homes.values():
        if home.lock is not None and home.lock >= 0:
            os.close(home.lock)
    _homes.clear()


os.register_at_fork(after_in_child=_forget_homes)


def _remove(folder: Path, process: int) -> None:
    if process != os.getpid():
        return
    # What is still being written there, say by a worker that is being killed, would be in the way once.
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
    with _making:
        for temporary, home in list(_homes.items()):
            if home.path == folder.parent:
                home.count -= 1
                if home.count == 0:
                    del _homes[temporary]
                    home.close()


@contextmanager
def _locked(folder: Path) -> Iterator[int | None]:
    lock = _lock(folder, must=True)
    try:
        yield lock
    finally:
        if lock is not None:
            os.close(lock)


def _lock(folder: Path, *, must: bool = False) -> int | None:
    """A descriptor with the folder's lock; None where another process has it, or it is gone.

    Where folders cannot be locked (NFS) nobody can sweep either, so it is -1: as good as locked; with `must`, None.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        return None if must else -1
    return descriptor


def _is_at(lock: int, folder: Path) -> bool:
    """Whether what is locked is still the folder of that name."""
    if lock < 0:
        return True
    try:
        return os.path.samestat(os.fstat(lock), folder.lstat())
    except OSError:
        return False


def _own_folders(temporary: Path, prefix: str) -> list[Path]:
    """This user's, no links to folders."""
    found = []
    with suppress(OSError):
        for path in temporary.iterdir():
            if path.name.startswith(prefix):
                with suppress(OSError):
                    about = path.lstat()
                    if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
                        found.append(path)
    return found


def _by_age(folders: list[Path]) -> list[Path]:
    """The newest first."""
    ages: dict[Path, int] = {}
    for folder in folders:
        with suppress(OSError):  # Another process may have removed it.
            ages[folder] = folder.lstat().st_mtime_ns
    return sorted(ages, key=lambda folder: ages[folder], reverse=True)
