"""Use of the cache by one compilation, which looks its program up there, and stores a new one.

Nothing here fails a compilation. A cache that cannot be used costs time only, and a note says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.cache.key import Request, UncacheableError, for_shapes
from tilewright.cache.store import Cache, DamagedEntryError, Stored, TooLargeError
from tilewright.records.dims import Sizes
from tilewright.runtime.metadata import Metadata
from tilewright.system.cache_path import most_bytes


class CacheUse:
    """One compilation's use of the cache, if it has one (`options.cache`)."""

    def __init__(
        self, request: Request, *, shapes: Sequence[Sizes] = (), model_key: str | None = None
    ) -> None:
        """`shapes` are those that the program is built ahead for. `model_key` is the key of the model and the options
        without dims, if it is known: then the model may have changed since, and is not read again."""
        folder = request.options.cache
        self._request = request
        self._given = request.options.parameters
        self._cache = Cache(folder, most_bytes=most_bytes()) if folder is not None else None
        self._shapes = shapes
        self._is_given = model_key is not None
        self.model_key = model_key
        """Key of the model and the options without dims; None before `find`, or if there is none."""
        self.notes: list[str] = []
        """Sentences on what the cache did, other than to do its work."""

    def _key(self, model_key: str) -> str:
        return for_shapes(model_key, self._request.options.dims, self._shapes)

    def current_key(self) -> str | None:
        """Returns the key of the model as it is now, and of the options without dims; None if it cannot be told."""
        if self._cache is None:
            return None
        try:
            return self._request.key(self._cache.hashes)
        except (UncacheableError, OSError):
            return None

    def find(self) -> Stored | None:
        """Returns the stored program, or None."""
        if self._cache is None:
            return None
        try:
            self.model_key = self.model_key or self._request.key(self._cache.hashes)
            found = self._cache.find(self._key(self.model_key), self._given)
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
        if self._cache is None or self.model_key is None:
            return
        try:
            self._check_unchanged()
            if is_recovered:
                self.notes.append("not stored in the compilation cache, because a step of it failed")
                return
            if self.model_key is None:
                self.notes.append(
                    "not stored in the compilation cache, because its files or the compiler changed meanwhile"
                )
                return
            self._cache.keep(
                self._key(self.model_key),
                model=self._request.model_name,
                module=module,
                parameters=parameters,
                metadata=metadata,
                given=self._given,
            )
        except UncacheableError as error:
            self.model_key = None
            self.notes.append(f"not stored in the compilation cache: {error.reason or 'its files changed'}")
        except TooLargeError as error:
            self.notes.append(f"not stored in the compilation cache: {error}")
        except OSError as error:
            self.notes.append(f"not stored in the compilation cache: {error}")

    def _check_unchanged(self) -> None:
        """Forgets the key if the model or the compiler has changed since it was made."""
        if self._is_given or self._cache is None:
            return
        if self._request.key(self._cache.hashes) != self.model_key:
            self.model_key = None
