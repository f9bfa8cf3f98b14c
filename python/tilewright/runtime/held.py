"""The files of a program, held open from loading until the program is released.

Replacing a file by renaming another over it does not affect a process that holds it open. Writing into it changes the
mapped pages, and truncating it ends a process that reads the missing pages (SIGBUS). Therefore modules, which IREE also
reads while unloading them, and small files are copied into memory. Large weights are mapped, and `HeldFile.check`
compares the state of the open file with the state in which its content was verified; that costs one system call. The
time between a check and the last read of a page is not covered.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import ProgramError
from tilewright.system.cores import available_cores

PIECE_BYTES = 4 << 20
"""Bytes of one piece of a file. The content hash of a larger file is the hash of its pieces' hashes, which are computed
in parallel. Weights of at most this size are copied into memory; larger ones are mapped."""

_CHUNK_BYTES = 1 << 20
"""Bytes that are read and hashed at a time, so that they stay in a core's cache in between."""

TICK_NS = 20_000_000
"""Resolution of file time stamps: Linux stamps files with its timer's clock, which advances at least every 10 ms
(CONFIG_HZ >= 100)."""

_SHOWN_DIGITS = 12
"""Digits of a hash that messages show."""


@dataclass(frozen=True)
class _Stamp:
    """State of a file, which every change of its content changes."""

    size: int
    modified_ns: int
    changed_ns: int
    """Change time of the inode, which a rename or `chmod` also changes."""


class HeldFile:
    """An open file of a program.

    `buffer` is its content, aligned to the page size. If `is_mapped`, the buffer is the file's own pages, and `check`
    must be called before and after they are read.
    """

    def __init__(self, path: str | os.PathLike[str], *, may_map: bool) -> None:
        """Opens a file; raises `OSError`. If `may_map` is False, it is copied into memory, however large it is."""
        self.path = Path(path).absolute()
        self._expected: str | None = None
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        close = weakref.finalize(self, os.close, self._descriptor)
        close.atexit = (
            False  # Do not close at exit: a program may still be called while the interpreter ends.
        )
        self._stamp = _stamp(self._descriptor)
        if may_map and self._stamp.size > PIECE_BYTES:
            self._stamp = _settled_stamp(self._descriptor)
        self.size = self._stamp.size
        self.is_mapped = may_map and self.size > PIECE_BYTES
        self.buffer: mmap.mmap | bytes
        if self.is_mapped:
            self.buffer = mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_READ)
        else:
            self.buffer = _read(self._descriptor, self.size)
            close()

    def digest(self) -> str:
        """The content hash in hexadecimal digits.

        It is the SHA-256 of a file of one piece; for a larger file, it is the SHA-256 of the SHA-256s of its pieces.
        """
        return self._digest(lambda offset, chunk: None)

    def copy(self, target: int) -> str:
        """Writes the content to an open file and returns the content hash of the written bytes.

        Raises `OSError`, or `ProgramError` if the file is no longer the one that was opened.
        """
        digest = self._digest(lambda offset, chunk: _write(target, offset, chunk))
        if self._expected not in (None, digest):
            raise self._changed(found=digest)
        self.check()
        return digest

    def expect(self, size: int, digest: str, *, otherwise: str, verify: bool) -> None:
        """Checks that the file has this size and, if `verify` is set, this content hash.

        Raises `ProgramError` with the message `otherwise` if not.
        """
        hint = "put back the files that were saved together, each under its name, or compile the model again"
        if self.size != size:
            raise ProgramError(
                f"{otherwise}: truncated, changed or replaced ({self.size} bytes instead of {size})",
                where=str(self.path),
                hint=hint,
            )
        self._expected = digest
        if not verify:
            return
        found = self.digest()
        if found != digest:
            raise ProgramError(
                f"{otherwise}: truncated, changed or replaced (content hash {_short(found)} instead of "
                f"{_short(digest)})",
                where=str(self.path),
                hint=hint,
            )

    def check(self) -> None:
        """Raises `ProgramError` if the content of the buffer may have changed.

        A file of which only the name or mode changed is hashed again, if its expected hash is known.
        """
        if not self.is_mapped:
            return
        if _stamp(self._descriptor) == self._stamp:
            return
        stamp = _settled_stamp(self._descriptor)
        if stamp.size != self.size:
            raise self._changed(size=stamp.size)
        if self._expected is not None:
            found = self.digest()
            if found != self._expected:
                raise self._changed(found=found)
        elif stamp.modified_ns != self._stamp.modified_ns:
            raise self._changed()
        self._stamp = stamp

    def _changed(self, *, size: int | None = None, found: str | None = None) -> ProgramError:
        how = ""
        if size is not None:
            how = f": it has {size} bytes instead of {self.size}"
        elif found is not None and self._expected is not None:
            how = f": its content hash is {_short(found)} instead of {_short(self._expected)}"
        return ProgramError(
            f"it was changed while a program was using it{how}",
            where=str(self.path),
            hint="load the program again, and replace its files by renaming others over them, as Program.save does",
        )

    def _digest(self, visit: Callable[[int, bytes], None]) -> str:
        """Computes the content hash; calls `visit` with every chunk and its offset, from several threads."""
        starts = range(0, max(self.size, 1), PIECE_BYTES)

        def piece(start: int) -> bytes:
            hashed = hashlib.sha256()
            for offset, chunk in self._chunks(start, min(start + PIECE_BYTES, self.size)):
                hashed.update(chunk)
                visit(offset, chunk)
            return hashed.digest()

        if len(starts) == 1:
            return piece(0).hex()
        with ThreadPoolExecutor(min(len(starts), available_cores())) as pool:
            return hashlib.sha256(b"".join(pool.map(piece, starts))).hexdigest()

    def _chunks(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yields the content from `start` to `end`.

        A large file is read rather than taken from the mapping, so that the missing end of a truncated file is an
        error.
        """
        for offset in range(start, end, _CHUNK_BYTES):
            stop = min(offset + _CHUNK_BYTES, end)
            if not self.is_mapped:
                yield offset, self.buffer[offset:stop]
                continue
            while offset < stop:
                chunk = os.pread(self._descriptor, stop - offset, offset)
                if not chunk:
                    raise self._changed(size=offset)
                yield offset, chunk
                offset += len(chunk)


def hold_module(file: Path | HeldFile) -> HeldFile:
    """Opens a module if it is not open yet; raises `ProgramError`."""
    return file if isinstance(file, HeldFile) else _open(file, may_map=False, missing="no such file")


def hold_weights(file: Path | HeldFile) -> HeldFile:
    """Opens a parameter file if it is not open yet; raises `ProgramError`."""
    if isinstance(file, HeldFile):
        return file
    hint = "keep them beside the .vmfb, under its name"
    return _open(file, may_map=True, missing="the program's weights are missing", hint=hint)


def _open(path: Path, *, may_map: bool, missing: str, hint: str | None = None) -> HeldFile:
    if not path.is_file():
        raise ProgramError(missing, where=str(path), hint=hint)
    try:
        return HeldFile(path, may_map=may_map)
    except OSError as error:
        raise ProgramError(f"cannot be read ({error.strerror})", where=str(path)) from None


def _read(descriptor: int, size: int) -> mmap.mmap | bytes:
    """Reads the first `size` bytes of an open file; raises an error if it is shorter."""
    if not size:
        return b""
    memory = mmap.mmap(-1, size)
    done = 0
    with memoryview(memory) as view:
        while done < size:
            count = os.preadv(descriptor, [view[done:]], done)
            if not count:
                raise OSError(errno.EIO, "it became shorter while it was read")
            done += count
    return memory


def _write(target: int, offset: int, chunk: bytes) -> None:
    written = 0
    while written < len(chunk):
        written += os.pwrite(target, chunk[written:], offset + written)


def _stamp(descriptor: int) -> _Stamp:
    status = os.fstat(descriptor)
    return _Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _settled_stamp(descriptor: int) -> _Stamp:
    """Returns a stamp that any later change alters.

    It waits until a stamp of the current clock tick is in the past.
    """
    stamp = _stamp(descriptor)
    left = stamp.changed_ns + TICK_NS - time.time_ns()
    if 0 < left <= TICK_NS:
        time.sleep(left / 1e9)
        stamp = _stamp(descriptor)
    return stamp


def _short(digest: str) -> str:
    return f"{digest[:_SHOWN_DIGITS]}..."
