"""Search for `tilewright-opt`, which runs single passes on the command line."""

from __future__ import annotations

import shutil
from pathlib import Path


def find_opt() -> str:
    """Returns the path of this installation's `tilewright-opt`, else the one that the shell finds."""
    installed = Path(__file__).parents[1] / "bin" / "tilewright-opt"
    built = Path(__file__).parents[3] / "bin" / "tilewright-opt"
    for candidate in (installed, built):
        if candidate.exists():
            return str(candidate)
    return shutil.which("tilewright-opt") or "tilewright-opt"
