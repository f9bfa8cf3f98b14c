"""Content hashes of files, remembered by the state of the file, so that large files are not read again each time.

A file whose device, inode, size and times are those of an earlier hash has the same content: any write changes its
times. The one exception is a write within the same tick of the clock that stamps files, so a hash is taken only once
the stamp is older than a tick, as `runtime.held` does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.records.encoding import RecordError, from_json, parse_json, to_json
from tilewright.runtime.held import TICK_NS, HeldFile

_FORMAT = 1
"""Raised when other files count as references of a file, so that what was remembered before is forgotten."""
_MOST_REMEMBERED = 4096
"""Most files whose hashes are remembered; each takes about 300 bytes."""


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """The state of a file, and what its content was found to be."""

    path: str
    stamp: list[int]
    """Device, inode, size, and the times of the last changes of content and inode, in ns."""
    sha256: str
    """Content hash as `HeldFile.digest` computes it."""
    refers_to: list[str]
    """Relative paths of the files that the content refers to: external data of an ONNX model."""


def _no_references(path: Path) -> list[str]:
    return []


class Hashes:
    """Content hashes of files, remembered in a folder; if it cannot be written, every file is read each time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def digest(self, path: Path) -> str:
        """Returns the content hash of a file. Raises `OSError` if it cannot be read or is no regular file."""
        return self.look_at(path).sha256

    def look_at(self, path: Path, references: Callable[[Path], list[str]] = _no_references) -> Remembered:
        """Returns the content hash of a file and the files that it refers to, which `references` finds in it."""
        path = path.absolute()
        # A file may be looked at with and without its references, which are then different memories.
        memory = (
            self._folder
            / hashlib.sha256(f"{_FORMAT} {references.__qualname__} {path}".encode()).hexdigest()[:40]
        )
        before = _settled_stamp(path)
        known = _recall(memory)
        if known is not None and known.path == str(path) and known.stamp == before:
            return known
        found = Remembered(
            path=str(path),
            stamp=before,
            sha256=HeldFile(path, may_map=True).digest(),
            refers_to=references(path),
        )
        if _stamp(path) == before:
            self._remember(memory, found)
        return found

    def forget(self, *, before: float | None = None) -> None:
        """Forgets the hashes, or those that were made before a time (seconds since the epoch)."""
        for age, path in self._by_age():
            if before is None or age < before:
                path.unlink(missing_ok=True)

    def shrink(self) -> None:
        """Forgets the oldest hashes if there are too many."""
        for _, path in self._by_age()[:-_MOST_REMEMBERED]:
            with contextlib.suppress(OSError):
                path.unlink()

    def _by_age(self) -> list[tuple[float, Path]]:
        """Returns the remembered hashes with the times at which they were made, oldest first."""
        found = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                with contextlib.suppress(OSError):  # another process may have removed it
                    found.append((entry.stat().st_mtime, Path(entry.path)))
        return sorted(found)

    def _remember(self, memory: Path, found: Remembered) -> None:
        import msgspec

        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".", delete=False) as file:
                try:
                    file.write(msgspec.json.encode(to_json(found)))
                    file.close()
                    Path(file.name).replace(memory)
                except BaseException:
                    Path(file.name).unlink()
                    raise


def _recall(memory: Path) -> Remembered | None:
    """Returns what was remembered; None if there is nothing, or something that cannot be read."""
    with contextlib.suppress(OSError, ValueError, RecordError):
        return from_json(Remembered, parse_json(memory.read_text()))
    return None


def _stamp(path: Path) -> list[int]:
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise OSError(f"{path} is no regular file")
    return [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]


def _settled_stamp(path: Path) -> list[int]:
    """Returns a stamp that any later change alters; it waits at most one tick."""
    stamp = _stamp(path)
    left = stamp[-1] + TICK_NS - time.time_ns()
    if 0 < left <= TICK_NS:
        time.sleep(left / 1e9)
        stamp = _stamp(path)
    return stamp
