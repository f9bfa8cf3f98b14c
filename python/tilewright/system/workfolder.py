"""Folders for intermediate files, which are removed soon however a process ends.

All working folders of a process are in one folder that it holds locked (flock). The lock ends with the process, even
after SIGKILL, and unlocked folders are removed when the next process makes its first working folder. The number of
folders that are kept for the user, for example to reproduce a failure, is limited; the oldest are removed first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MOST_KEPT = 8
"""Most folders with reproducers of failures that stay in the temporary folder."""

_PREFIX, _FAILURE_PREFIX = "tilewright-work-", "tilewright-failed-"


class WorkFolder:
    """A folder that is removed with this object, at the end of its `with` block, or with the process, whichever is
    first.

    `kind` is part of its name, to identify it in the temporary folder.
    """

    def __init__(self, kind: str) -> None:
        self.path = _make(kind)
        # A forked process has a copy of the object, but must not remove the folder.
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def cleanup(self) -> None:
        """Removes the folder, if it still exists."""
        self._remove()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def __repr__(self) -> str:
        return f"<tilewright.system.workfolder.WorkFolder {self.path}>"


def failure_folder() -> Path:
    """Makes a folder for a reproducer of a failure. It stays, and the oldest are removed until `MOST_KEPT` are
    left."""
    made = Path(tempfile.mkdtemp(prefix=_FAILURE_PREFIX))
    others = [folder for folder in _own_folders(made.parent, _FAILURE_PREFIX) if folder != made]
    for old in _by_age(others)[MOST_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    return made


def is_kept(command: str) -> bool:
    """Returns True if a command reads from a `failure_folder`."""
    return _FAILURE_PREFIX in command


def sweep(temporary: Path) -> None:
    """Removes the folders of this user's processes that ended without removing them."""
    for folder in _own_folders(temporary, _PREFIX):
        with _locked(folder) as lock:
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)


class _Home:
    """The folder of this process in one temporary folder, and its lock; it is removed when it is empty."""

    def __init__(self, temporary: str) -> None:
        self.count = 0
        sweep(Path(temporary))
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=temporary))
            self.lock = _lock(self.path)
            # Another process may have removed the folder between the two steps.
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
"""The lock is reentrant, because garbage collection may remove folders while one is made."""


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
                # Something that cleans the temporary folder has removed it. The next attempt makes a new one, or fails
                # as well.
                if _homes.get(temporary) is home:
                    del _homes[temporary]
                home.close()
            except BaseException:
                home.count -= 1
                raise


def _forget_homes() -> None:
    """Forgets the parent's folders in a forked process."""
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
    # Removal fails if files are still being written, for example by a worker that is being killed; so it is repeated.
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(0.01)
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
    """Returns a descriptor that holds the folder's lock; None if another process has it, or the folder is gone.

    On file systems without locks (NFS) no process can sweep either, so the result is -1, which counts as locked; with
    `must`, it is None.
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
    """Returns True if the locked folder is still the one at that path."""
    if lock < 0:
        return True
    try:
        return os.path.samestat(os.fstat(lock), folder.lstat())
    except OSError:
        return False


def _own_folders(temporary: Path, prefix: str) -> list[Path]:
    """Returns this user's folders, without links to folders."""
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
    """Returns the folders that still exist, newest first."""
    ages: dict[Path, int] = {}
    for folder in folders:
        with suppress(OSError):  # Another process may have removed it.
            ages[folder] = folder.lstat().st_mtime_ns
    return sorted(ages, key=lambda folder: ages[folder], reverse=True)
