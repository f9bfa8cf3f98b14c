"""Names of a saved program's files, which lie beside its module (.vmfb)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from tilewright.errors import OutputError
from tilewright.records.encoding import parse_json


def beside(module: Path, suffix: str) -> Path:
    """Returns the file beside the module that has its name with another suffix.

    If the module is a link, a file beside the link takes precedence over one beside the link's target.
    """
    beside = module.with_name(module.stem + suffix)
    if beside.exists():
        return beside
    real = module.resolve()
    elsewhere = real.with_name(real.stem + suffix)
    return elsewhere if elsewhere.exists() else beside


def parameter_suffix(scope: str) -> str:
    """Returns the suffix of a parameter file after the module's name; it escapes characters that file names cannot
    have."""
    return ".irpa" if scope == "model" else f".{quote(scope, safe='')}.irpa"


def refuse_taken(target: Path, weights: Mapping[str, Path]) -> None:
    """Raises `OutputError` if a file of the program would have the name of another program's weights.

    For example, the weights of scope "b" of "a.vmfb" and the weights of "a.b.vmfb" are both "a.b.irpa".
    """
    for path in weights.values():
        stem = path.stem
        while stem:
            if stem != target.stem and path.name in _saved_weights(target.with_name(f"{stem}.json")):
                raise OutputError(
                    f"its weights would replace those of {stem}.vmfb",
                    where=str(path),
                    hint="save under another name",
                )
            stem = stem.rpartition(".")[0]


def _saved_weights(description: Path) -> list[str]:
    """Returns the names of a saved program's parameter files; none if the file describes no program."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return [
            description.stem + parameter_suffix(scope)
            for scope in parse_json(description.read_text())["parameters"]
        ]
    return []
