"""The option `--dims`: "batch=1,seq=1:512" or "seq=16,128,512"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from tilewright.errors import CompileError
from tilewright.records.dims import Dim, read_dims


def dims_argument(texts: Sequence[str]) -> dict[str, Dim]:
    """Returns what the option says of each dim. Raises a usage error for text of another form."""
    choices: dict[str, list[str]] = {}
    name = ""
    for part in (part for text in texts for part in text.split(",")):
        given, equals, size = part.rpartition("=")
        if equals:
            name = given
            if name in choices:
                raise click.BadParameter(f"'{name}' is given twice", param_hint="--dims")
        choices.setdefault(name, []).append(size)
    try:
        return read_dims({name: _choice(name, sizes) for name, sizes in choices.items()})
    except CompileError as error:
        raise click.BadParameter(str(error), param_hint="--dims") from None


def _choice(name: str, sizes: Sequence[str]) -> Any:
    if not name:
        raise _wrong(sizes[0])
    low, colon, high = sizes[0].partition(":")
    if len(sizes) == 1 and colon:
        return _number(low), _number(high)
    numbers = [_number(size) for size in sizes]
    return numbers[0] if len(numbers) == 1 else numbers


def _number(text: str) -> int:
    if not text.isdigit():
        raise _wrong(text)
    return int(text)


def _wrong(text: str) -> click.BadParameter:
    return click.BadParameter(
        f"'{text}' is not of the form NAME=SIZE, NAME=LOW:HIGH or NAME=SIZE,SIZE", param_hint="--dims"
    )
