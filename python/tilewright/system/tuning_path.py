"""Path of the user's tuning database."""

from __future__ import annotations

import os
from pathlib import Path


def default_path() -> Path:
    """Returns the path of the user's database: $TILEWRIGHT_TUNING, or tilewright/tuning.db in the user's cache
    folder."""
    if named := os.environ.get("TILEWRIGHT_TUNING"):
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tilewright" / "tuning.db"
