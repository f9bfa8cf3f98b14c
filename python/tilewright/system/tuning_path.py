"""Path of the user's tuning database."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.system.cache_path import user_folder


def default_path() -> Path:
    """Returns the path of the user's database: $TILEWRIGHT_TUNING, or tilewright/tuning.db in the user's cache
    folder."""
    named = os.environ.get("TILEWRIGHT_TUNING")
    return Path(named) if named else user_folder() / "tuning.db"
