"""Weights that a front end takes out of a model: they go straight to a parameter archive and never become text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tilewright.errors import OutputError
from tilewright.records.signature import Array
from tilewright.runtime.parameter_file import Data, write_parameters

PARAMETER_SCOPE = "model"
# A smaller weight stays in the graph as a constant, because there the compiler can fold and inspect it.
MINIMUM_PARAMETER_ELEMENTS = 256


def write_archive(path: Path, weights: Iterable[tuple[str, Array]]) -> None:
    """Writes weights by key to an archive (.irpa). Raises `OutputError` if they cannot be written."""
    try:
        write_parameters(path, {key: Data(array.nbytes, [array]) for key, array in weights})
    except OSError as error:
        raise OutputError(
            "the weights cannot be written", where=str(path), hint="free disk space, or set TMPDIR"
        ) from error


class PendingArchives:
    """The parameter archives of a model, by scope. Writing them takes as long as the stages of a large model that do
    not need them yet, so it waits until another process has work (`write`), or until they are needed."""

    def __init__(self) -> None:
        self._paths: dict[str, Path] = {}
        self._pending: list[tuple[Path, list[tuple[str, Array]]]] = []

    def add(self, scope: str, path: Path, weights: Iterable[tuple[str, Array]]) -> None:
        """Adds an archive, with weights by key. The arrays are read when it is written."""
        self._paths[scope] = path
        self._pending.append((path, list(weights)))

    def write(self) -> None:
        """Writes what is not written yet. Raises `OutputError` if it cannot be written."""
        while self._pending:
            write_archive(*self._pending[-1])
            self._pending.pop()

    def paths(self) -> dict[str, Path]:
        """Returns where the archives are, after writing them."""
        self.write()
        return self._paths
