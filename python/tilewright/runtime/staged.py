"""Files that are written together: all of them, or none."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tilewright.runtime.held import HeldFile

_ABANDONED_S = 60.0
"""Seconds after which an unchanged temporary file that nobody holds open counts as left by a killed `save`."""

_TURN_S = 5.0
"""Seconds to wait for another process to rename its files, which takes it less than a millisecond."""


class Staged:
    """Files under temporary names in their folder, which are renamed together at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending: dict[Path, tuple[Path, int]] = {}
        """Temporary names and open files, by final name."""

    def copy(self, source: HeldFile, final: Path) -> str:
        """Copies a file and returns the content hash of the written bytes."""
        # A link would be faster, but writing into the saved file would then change what this program maps.
        return source.copy(self._temporary(final))

    def write(self, parts: Iterable[bytes | memoryview], final: Path) -> None:
        """Writes a file of these parts, one after another."""
        with open(self._temporary(final), "wb", closefd=False) as file:
            for part in parts:
                file.write(part)

    def commit(self) -> None:
        with _in_turn(self._folder):
            for final, (temporary, descriptor) in list(self._pending.items()):
                os.fchmod(descriptor, 0o644)
                temporary.replace(final)
                del self._pending[final]
                os.close(descriptor)

    def discard(self) -> None:
        for temporary, descriptor in self._pending.values():
            temporary.unlink(missing_ok=True)
            os.close(descriptor)

    def _temporary(self, final: Path) -> int:
        _sweep(final)
        descriptor, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=".tmp", dir=self._folder)
        self._pending[final] = (Path(name), descriptor)
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor


@contextlib.contextmanager
def _in_turn(folder: Path) -> Iterator[None]:
    """Makes other processes that save into the folder wait, so that their files do not mix with these.

    If the folder cannot be locked, or stays locked, saving goes on; `load` refuses mixed files.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + _TURN_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(0.001)
                    continue
            except OSError:
                pass  # some file systems have no locks
            break
        yield
    finally:
        os.close(descriptor)


def _sweep(final: Path) -> None:
    """Removes temporary files that earlier, killed saves to the same name left behind."""
    start = f".{final.name}."
    for path in final.parent.iterdir():
        if not (path.name.startswith(start) and path.name.endswith(".tmp")):
            continue
        with contextlib.suppress(OSError), path.open("rb") as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > _ABANDONED_S:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
