"""The files of a program, held open from the time it is loaded until it goes.

A file that is replaced by renaming another over it changes nothing for who holds it. One that somebody writes into
changes what is mapped of it, and one that somebody truncates ends the process that reads the pages that are gone
(SIGBUS). So modules, which IREE also reads when it unloads them, and small files are copied into memory. Large weights
are mapped, and `HeldFile.check` compares the state of the open file with the one in which its content was known, which
costs one system call. Between a check and the last read of a page remains a moment that no check covers.
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
"""The content hash of a larger file is that of the hashes of its pieces of this size, which are computed in parallel.
Weights of at most so many bytes are copied into memory; larger ones are mapped."""

_CHUNK_BYTES = 1 << 20
"""Read and hashed at a time: it stays in a core's cache in between."""

TICK_NS = 20_000_000
"""Linux stamps files with a clock that advances with its timer, every 10 ms or more often (CONFIG_HZ >= 100)."""

_SHOWN_DIGITS = 12
"""Of a hash, in messages."""


@dataclass(frozen=True)
class _Stamp:
    """The state of a file; whoever changes the content changes it."""

    size: int
    modified_ns: int
    changed_ns: int
    """The inode, which also a rename or `chmod` does."""


class HeldFile:
    """A file of a program, open. `buffer` is its content, at a multiple of the page size; `is_mapped` says that it is
    the file's own pages, so that `check` has to come before and after they are read."""

    def __init__(self, path: str | os.PathLike[str], *, may_map: bool) -> None:
        """Opens a file; raises `OSError`. Without `may_map` it is copied into memory, however large it is."""
        self.path = Path(path).absolute()
        self._expected: str | None = None
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        close = weakref.finalize(self, os.close, self._descriptor)
        close.atexit = False  # a program may still be called while the interpreter ends
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
        """The content hash, in hexadecimal digits: SHA-256 of a file of one piece, and of a larger one the SHA-256 of
        the SHA-256s of its pieces."""
        return self._digest(lambda offset, chunk: None)

    def copy(self, target: int) -> str:
        """Writes the content to an open file and gives the content hash of what was written; raises `OSError`, and
        `ProgramError` where the file is no longer the one that was opened."""
        digest = self._digest(lambda offset, chunk: _write(target, offset, chunk))
        if self._expected not in (None, digest):
            raise self._changed(found=digest)
        self.check()
        return digest

    def expect(self, size: int, digest: str, *, otherwise: str, verify: bool) -> None:
        """Says what the file has to be. Raises `ProgramError` if it is not, with `otherwise` as the message: the size
        always counts, the content hash where `verify` is set."""
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
        """Raises `ProgramError` where the content of the buffer may no longer be what it was. A file that only its
        name or its mode changed of is hashed once more, if it is known what it has to be."""
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
        """The content hash; `visit` is called with every chunk and its offset, in several threads."""
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
        """The content from `start` to `end`. Of a large file it is read and not taken from the mapping: the end of a
        file that became shorter is then an error."""
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
    """Opens a module, if it is not open; raises `ProgramError`."""
    return file if isinstance(file, HeldFile) else _open(file, may_map=False, missing="no such file")


def hold_weights(file: Path | HeldFile) -> HeldFile:
    """Opens a parameter file, if it is not open; raises `ProgramError`."""
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
    """The first bytes of an open file, which has to have so many."""
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
    """A stamp that a later change cannot leave as it is: one of this very moment is waited for to be past."""
    stamp = _stamp(descriptor)
    left = stamp.changed_ns + TICK_NS - time.time_ns()
    if 0 < left <= TICK_NS:
        time.sleep(left / 1e9)
        stamp = _stamp(descriptor)
    return stamp


def _short(digest: str) -> str:
    return f"{digest[:_SHOWN_DIGITS]}..."
