"""Weights that a front end takes out of a model: they go straight to a parameter archive and never become text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tilewright.errors import OutputError
from tilewright.records.signature import Array

PARAMETER_SCOPE = "model"
# A smaller weight stays in the graph as a constant, because there the compiler can fold and inspect it.
MINIMUM_PARAMETER_ELEMENTS = 256


def write_archive(path: Path, weights: Iterable[tuple[str, Array]]) -> None:
    """Writes weights by key to an archive (.irpa). Raises `OutputError` if they cannot be written."""
    from iree import runtime

    index = runtime.ParameterIndex()
    for key, array in weights:
        index.add_buffer(key, np.require(array, requirements="C").reshape(-1).view(np.uint8))
    try:
        index.create_archive_file(str(path))
    except (RuntimeError, IndexError, ValueError) as error:
        raise OutputError(
            "the weights cannot be written", where=str(path), hint="free disk space, or set TMPDIR"
        ) from error
