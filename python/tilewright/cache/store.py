"""The folder of the compilation cache.

    programs/<key>/model.vmfb, model.json, model*.irpa   a program as `Program.save` writes it
    programs/<key>/entry.json                            when and of what it was compiled
    hashes/                                              content hashes of files, by their state (`hashes`)
    unfinished/                                          entries that are being written or removed

An entry is written under `unfinished/` and renamed when it is complete, so that readers see all of it or nothing; of
two processes that write the same entry, the second drops its own. The time of an entry's folder is that of its last
use.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tilewright.cache.hashes import Hashes
from tilewright.errors import ProgramError
from tilewright.records.encoding import from_json, parse_json, to_json
from tilewright.runtime.description import FileRecord, FileRecords, description_text, read_description
from tilewright.runtime.file_names import parameter_suffix
from tilewright.runtime.held import HeldFile, hold_module, hold_weights
from tilewright.runtime.metadata import Metadata

_ABANDONED_S = 3600.0
"""Seconds after which an unchanged folder in unfinished/ counts as left by a killed process."""

_FICLONE = 0x40049409  # linux/fs.h: makes a file share the blocks of another until one of them is written to


class DamagedEntryError(Exception):
    """An entry was not what was stored; it has been removed."""


class TooLargeError(Exception):
    """A program is larger than the cache may be."""


@dataclass(frozen=True, kw_only=True)
class EntryRecord:
    """entry.json: where an entry comes from."""

    key: str
    model: str
    """Name of the model, for people."""
    target: str
    compiled_at: str
    """Time in UTC, in ISO 8601."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A program in the cache, opened and verified."""

    module: HeldFile
    parameters: Mapping[str, HeldFile]
    metadata: Metadata
    compiled_at: datetime


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What the cache holds."""

    folder: Path
    programs: int
    bytes: int


class Cache:
    """A folder of compiled programs. Methods that write raise `OSError` if the folder cannot be written."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        self._programs = folder / "programs"
        self._unfinished = folder / "unfinished"
        self.hashes = Hashes(folder / "hashes")

    def find(self, key: str, given: Mapping[str, Path]) -> Stored | None:
        """Returns the program of a key, or None.

        `given` are the caller's own parameter files by scope; an entry has no copies of those. Raises
        `DamagedEntryError` after it has removed an entry that is incomplete or was changed.
        """
        entry = self._programs / key
        try:
            # While it is open, its inode stands for no other folder, so `_is_at` tells whether it is still there.
            folder = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            stored = self._open(entry, given)
        except (OSError, ValueError, ProgramError) as error:
            if not _is_at(folder, entry):
                return None  # another process has removed or replaced it meanwhile
            with contextlib.suppress(OSError):
                self._remove(entry)
            raise DamagedEntryError(str(error)) from None
        finally:
            os.close(folder)
        with contextlib.suppress(OSError):  # a cache that cannot be written can still be read
            os.utime(entry)
        return stored

    def _open(self, entry: Path, given: Mapping[str, Path]) -> Stored:
        about = from_json(EntryRecord, parse_json((entry / "entry.json").read_text()))
        if about.key != entry.name:
            raise ProgramError("it belongs to another key", where=str(entry / "entry.json"))
        metadata, records = read_description(entry / "model.json")
        module = hold_module(entry / "model.vmfb")
        records.module.require(module, otherwise="it is not the module that was stored", verify=True)
        parameters = {}
        for scope, record in records.parameters.items():
            own = entry / f"model{parameter_suffix(scope)}"
            path = own if scope not in given or own.exists() else given[scope]
            weights = hold_weights(path)
            known = self.hashes.digest(path) == record.sha256
            record.require(weights, otherwise="it is not the weights that were stored", verify=not known)
            parameters[scope] = weights
        return Stored(
            module=module,
            parameters=parameters,
            metadata=metadata,
            compiled_at=datetime.fromisoformat(about.compiled_at),
        )

    def keep(
        self,
        key: str,
        *,
        model: str,
        module: Path,
        parameters: Mapping[str, Path],
        metadata: Metadata,
        given: Mapping[str, Path],
    ) -> None:
        """Stores a program, and removes the least recently used ones if the cache becomes too large.

        Parameter files that are the caller's own (`given`) stay where they are, and only their hashes are stored.
        Raises `TooLargeError`.
        """
        ours = {scope: path for scope, path in parameters.items() if given.get(scope) != path}
        size = sum(path.stat().st_size for path in (module, *ours.values()))
        if size > self._most_bytes:
            raise TooLargeError(f"it has {size / 1e6:.1f} MB and the cache {self._most_bytes / 1e6:.1f} MB")
        self._make_folders()
        self._sweep()
        work = Path(tempfile.mkdtemp(prefix=f"{key[:12]}-", dir=self._unfinished))
        try:
            records = {
                scope: _place(path, work / f"model{parameter_suffix(scope)}")
                if scope in ours
                else FileRecord(path.stat().st_size, self.hashes.digest(path))
                for scope, path in parameters.items()
            }
            code = _place(module, work / "model.vmfb")
            (work / "model.json").write_text(description_text(metadata, FileRecords(code, records)))
            _write_record(
                work / "entry.json",
                EntryRecord(
                    key=key,
                    model=model,
                    target=metadata.target,
                    compiled_at=datetime.now(UTC).isoformat(timespec="seconds"),
                ),
            )
            # Another process may have stored the same program; renaming does not replace a folder that has files.
            with _existing_stays():
                work.rename(self._programs / key)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        self._shrink()

    def usage(self) -> Usage:
        """Returns the number of programs and the bytes of their files."""
        sizes = [size for _, size, _ in self._entries()]
        return Usage(folder=self.folder, programs=len(sizes), bytes=sum(sizes))

    def clear(self, *, older_than_days: float | None = None) -> int:
        """Removes all programs, or those that were last used longer ago. Returns how many."""
        before = None if older_than_days is None else time.time() - older_than_days * 86400
        count = 0
        if self._programs.is_dir():
            self._make_folders()
        for used, _, entry in self._entries():
            if before is None or used < before:
                self._remove(entry)
                count += 1
        self.hashes.forget(before=before)
        self._sweep()
        return count

    def _make_folders(self) -> None:
        # A program is native code, so nobody else may put any here.
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self._programs, self._unfinished):
            folder.mkdir(exist_ok=True)

    def _entries(self) -> list[tuple[float, int, Path]]:
        """Returns the time of last use, the bytes and the folder of every entry, least recently used first."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for entry in self._programs.iterdir():
                with contextlib.suppress(OSError):  # another process may have removed it
                    size = sum(file.stat().st_size for file in entry.iterdir())
                    found.append((entry.stat().st_mtime, size, entry))
        return sorted(found)

    def _shrink(self) -> None:
        entries = self._entries()
        total = sum(size for _, size, _ in entries)
        for _, size, entry in entries:
            if total <= self._most_bytes:
                break
            with contextlib.suppress(OSError):
                self._remove(entry)
                total -= size
        self.hashes.shrink()

    def _remove(self, entry: Path) -> None:
        """Removes an entry: first its name, so that nobody finds a part of it."""
        self._unfinished.mkdir(exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix="removed-", dir=self._unfinished))
        try:
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                entry.rename(aside / entry.name)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _sweep(self) -> None:
        """Removes what killed processes left unfinished."""
        with contextlib.suppress(FileNotFoundError):
            for folder in self._unfinished.iterdir():
                with contextlib.suppress(OSError):
                    if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _existing_stays() -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def _is_at(folder: int, path: Path) -> bool:
    """Returns True if an open folder still has this path."""
    try:
        return os.path.samestat(os.fstat(folder), path.stat())
    except OSError:
        return False


def _place(source: Path, target: Path) -> FileRecord:
    """Puts a file that nobody will write to into an entry, without copying its data if the file system permits that.

    A clone shares the blocks, a hard link the file itself; across file systems the data is copied.
    """
    held = HeldFile(source, may_map=True)
    if not _clone(source, target):
        try:
            os.link(source, target)
        except OSError:
            with target.open("wb") as file:
                return FileRecord(held.size, held.copy(file.fileno()))
    return FileRecord(held.size, held.digest())


def _clone(source: Path, target: Path) -> bool:
    try:
        with source.open("rb") as whole, target.open("xb") as clone:
            fcntl.ioctl(clone.fileno(), _FICLONE, whole.fileno())
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True


def _write_record(path: Path, record: EntryRecord) -> None:
    import msgspec

    path.write_bytes(msgspec.json.encode(to_json(record)))
