"""Checks that a `.pt2` file holds only data: no code that would run when it is loaded, and no more than its size."""

from __future__ import annotations

import contextlib
import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tilewright.errors import ModelError

_CODE = ("custom_obj_", "opaque_obj_")
"""Beginnings of the names of files with pickled objects, which PyTorch would run."""
_FORCE, _FORBID = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
_changing = threading.Lock()


def check_archive(path: Path) -> None:
    """Raises `ModelError` for an archive with pickled objects, or whose files are larger than it is.

    PyTorch stores files as they are, so a compressed one was made by something else and may be of any size.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            files = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise ModelError(
            f"not a program of torch.export: {error}", where=str(path), hint="save it again"
        ) from error
    for file in files:
        name = file.filename.rpartition("/")[2]
        if name.startswith(_CODE):
            raise ModelError(
                f"it holds a pickled object ('{file.filename}'), which is code",
                where=str(path),
                hint="load it with torch.export.load if you trust it, and compile what that returns",
            )
        if file.compress_type != zipfile.ZIP_STORED:
            raise ModelError(f"'{file.filename}' in it is compressed", where=str(path), hint="save it again")
    if sum(file.file_size for file in files) > path.stat().st_size:
        raise ModelError("its files overlap", where=str(path), hint="save it again")


@contextlib.contextmanager
def only_tensors() -> Iterator[None]:
    """Makes PyTorch load nothing but tensors and plain containers from pickles inside the `with` block."""
    with _changing:
        before = {name: os.environ.pop(name, None) for name in (_FORCE, _FORBID)}
        os.environ[_FORCE] = "1"
        try:
            yield
        finally:
            del os.environ[_FORCE]
            os.environ.update({name: value for name, value in before.items() if value is not None})
