"""What one compilation does with the cache: it looks its program up, and stores a new one.

Nothing here fails a compilation. A cache that cannot be used costs time only, and a note says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tilewright.cache.key import Request, UncacheableError
from tilewright.cache.store import Cache, DamagedEntryError, Stored, TooLargeError
from tilewright.runtime.metadata import Metadata
from tilewright.system.cache_path import most_bytes


class CacheUse:
    """One compilation's use of the cache, if it has one (`options.cache`)."""

    def __init__(self, request: Request) -> None:
        folder = request.options.cache
        self._request = request
        self._given = request.options.parameters
        self._cache = Cache(folder, most_bytes=most_bytes()) if folder is not None else None
        self._key: str | None = None
        self.notes: list[str] = []
        """Sentences on what the cache did, other than to do its work."""

    def find(self) -> Stored | None:
        """Returns the stored program, or None."""
        if self._cache is None:
            return None
        try:
            self._key = self._request.key(self._cache.hashes)
            found = self._cache.find(self._key, self._given)
        except UncacheableError as error:
            if error.reason:
                self.notes.append(f"the compilation cache is not used: {error.reason}")
            return None
        except DamagedEntryError as damage:
            self.notes.append(f"an entry of the compilation cache was damaged and is replaced ({damage})")
            return None
        except OSError as error:
            self.notes.append(f"the compilation cache is not used: {error}")
            return None
        if found is not None:
            self.notes.append(f"from the compilation cache, compiled {found.compiled_at:%Y-%m-%d %H:%M} UTC")
        return found

    def keep(
        self, module: Path, parameters: Mapping[str, Path], metadata: Metadata, *, is_recovered: bool
    ) -> None:
        """Stores a new program, unless what it was compiled from has changed meanwhile.

        A compilation that recovered from a failure is not stored: it may do better next time, and its notes name files
        that do not stay.
        """
        if self._cache is None or self._key is None:
            return
        if is_recovered:
            self.notes.append("not stored in the compilation cache, because a step of it failed")
            return
        try:
            if self._request.key(self._cache.hashes) != self._key:
                self.notes.append(
                    "not stored in the compilation cache, because its files or the compiler changed meanwhile"
                )
                return
            self._cache.keep(
                self._key,
                model=self._request.model_name,
                module=module,
                parameters=parameters,
                metadata=metadata,
                given=self._given,
            )
        except UncacheableError as error:
            self.notes.append(f"not stored in the compilation cache: {error.reason or 'its files changed'}")
        except TooLargeError as error:
            self.notes.append(f"not stored in the compilation cache: {error}")
        except OSError as error:
            self.notes.append(f"not stored in the compilation cache: {error}")
