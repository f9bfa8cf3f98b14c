"""Where `tilewright-opt` is, which runs single passes on the command line."""

from __future__ import annotations

import shutil
from pathlib import Path


def find_opt() -> str:
    """The `tilewright-opt` of this installation, else whichever the shell finds."""
    installed = Path(__file__).parents[1] / "bin" / "tilewright-opt"
    built = Path(__file__).parents[3] / "bin" / "tilewright-opt"
    for candidate in (installed, built):
        if candidate.exists():
            return str(candidate)
    return shutil.which("tilewright-opt") or "tilewright-opt"
