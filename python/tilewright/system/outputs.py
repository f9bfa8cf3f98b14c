"""Check of paths to which results are written."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.errors import OutputError


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Raises `OutputError` if the path is a folder, or a device or pipe, which a new file would replace."""
    where = os.fspath(path)
    if where.endswith(os.sep) or Path(where).is_dir():
        raise OutputError("is a folder", where=where, hint="give the name of a file in it")
    if Path(where).exists() and not Path(where).is_file():
        raise OutputError("is a device or a pipe", where=where, hint="give the name of a file")
