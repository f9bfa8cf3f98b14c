"""Folder and size limit of the user's compilation cache."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.errors import OutputError

_OFF = ("off", "0", "no", "false")
_DEFAULT_BYTES = 10 * 10**9


def user_folder() -> Path:
    """Returns tilewright's folder in the user's cache folder: $XDG_CACHE_HOME or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tilewright"


def default_cache() -> Path | None:
    """Returns the folder of the user's compilation cache: $TILEWRIGHT_CACHE, or programs/ in `user_folder`.

    It is None if $TILEWRIGHT_CACHE is "off".
    """
    named = os.environ.get("TILEWRIGHT_CACHE", "").strip()
    if named.lower() in _OFF:
        return None
    return Path(named).absolute() if named else user_folder() / "programs"


def most_bytes() -> int:
    """Returns the most bytes that a cache may hold: $TILEWRIGHT_CACHE_GB in units of 10^9 bytes, by default 10.

    Raises `OutputError` if the variable is no number.
    """
    given = os.environ.get("TILEWRIGHT_CACHE_GB", "").strip()
    if not given:
        return _DEFAULT_BYTES
    try:
        gigabytes = float(given)
    except ValueError:
        gigabytes = -1.0
    if not 0 <= gigabytes < float("inf"):
        raise OutputError(f"TILEWRIGHT_CACHE_GB is '{given}'", hint="give the size of the cache in gigabytes")
    return int(gigabytes * 1e9)
