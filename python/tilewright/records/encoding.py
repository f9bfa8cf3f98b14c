"""Dataclasses to JSON and back: snake_case fields are camelCase members, lists and records nest."""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

Record = TypeVar("Record")


class RecordError(ValueError):
    """JSON that does not fit a record; the message names the member."""


def parse_json(text: str) -> Any:
    """What a file says that anybody may have written; a ValueError also where it nests without end."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("values nest too deeply") from None


def to_json(value: Any) -> Any:
    """A record, or a list of records or plain values, as plain JSON data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {camel_case(f.name): to_json(getattr(value, f.name)) for f in fields}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type[Record], data: Any, path: str = "") -> Record:
    """Builds a record; unknown members, and missing ones without a default, raise `RecordError`."""
    if not isinstance(data, Mapping):
        raise RecordError(f"{path or 'value'}: expected an object")
    hints = typing.get_type_hints(kind)
    fields = {camel_case(f.name): f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(data) - set(fields))
    if unknown:
        raise RecordError(f"{path}{unknown[0]}: unknown member; known ones: {', '.join(fields)}")
    values = {
        fields[member].name: _convert(hints[fields[member].name], value, f"{path}{member}")
        for member, value in data.items()
    }
    try:
        return kind(**values)
    except TypeError as error:
        raise RecordError(f"{path or 'value'}: {error}") from None


def _convert(hint: Any, value: Any, path: str) -> Any:
    if typing.get_origin(hint) in (list, tuple):
        if not isinstance(value, list):
            raise RecordError(f"{path}: expected a list")
        element = typing.get_args(hint)[0]
        items = [_convert(element, item, f"{path}[{i}]") for i, item in enumerate(value)]
        return items if typing.get_origin(hint) is list else tuple(items)
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast("type[Any]", hint), value, f"{path}.")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def check_kinds(hint: Any, value: Any, path: str = "value") -> None:
    """Raises `RecordError` where something in `value`, which was read from JSON, is not what the hints of its records
    say."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return
    if origin in (typing.Union, types.UnionType):
        fits = [kind for kind in arguments if isinstance(value, typing.get_origin(kind) or kind)]
        if not fits:
            raise _unexpected(path, hint, value)
        check_kinds(fits[0], value, path)
        return
    if hint is float and isinstance(value, int):
        hint = int
    if not isinstance(value, origin or hint) or (isinstance(value, bool) and hint is not bool):
        raise _unexpected(path, hint, value)
    if dataclasses.is_dataclass(value):
        hints = typing.get_type_hints(type(value))
        for member in dataclasses.fields(value):
            check_kinds(hints[member.name], getattr(value, member.name), f"{path}.{member.name}")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            check_kinds(arguments[1], item, f"{path}[{name!r}]")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_kinds(arguments[0], item, f"{path}[{index}]")


def _unexpected(path: str, hint: Any, value: Any) -> RecordError:
    return RecordError(f"{path}: expected {getattr(hint, '__name__', hint)}, not {value!r:.60}")


def camel_case(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)
