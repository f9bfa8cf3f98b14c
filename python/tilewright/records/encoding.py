"""Conversion between dataclasses and JSON: snake_case fields are camelCase members; lists and records may nest.

msgspec checks the types and reports the position of a value that does not fit. It renames members and refuses unknown
ones only for its own structs, so a record is first read as a struct with the same fields.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

Record = TypeVar("Record")

# Most values of a record are of these types. The plan of a large model has tens of thousands of them.
_PLAIN = frozenset({str, int, float, bool, types.NoneType})


class RecordError(ValueError):
    """JSON does not fit a record; the message names the member."""


def parse_json(text: str) -> Any:
    """Parses the text of a file from an untrusted source; raises `ValueError` if it is malformed or nested too
    deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("values nest too deeply") from None


def to_json(value: Any) -> Any:
    """Converts a record, or a list or mapping of records or plain values, to plain JSON data. Keys of mappings stay.

    Nothing is checked here: the compiler reports values that are wrong.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if dataclasses.is_dataclass(kind):
        return {member: to_json(getattr(value, name)) for name, member in _members(kind)}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return value


@functools.cache
def _members(kind: type) -> list[tuple[str, str]]:
    """Returns the fields of a record, each with the name of its member."""
    return [(field.name, camel_case(field.name)) for field in dataclasses.fields(kind)]


def from_json(kind: type[Record], data: Any) -> Record:
    """Builds a record. Raises `RecordError` for members that are unknown, missing, or of the wrong type."""
    import msgspec

    read = _convert(data, _struct(typing.cast("type", kind)), "")
    return msgspec.convert(read, kind, from_attributes=True)


def check_kinds(kind: Any, value: Any, path: str = "value") -> None:
    """Raises `RecordError` if something in `value`, which was read from JSON, contradicts the type hints of its
    records."""
    import msgspec

    _convert(msgspec.to_builtins(value), kind, path)


def _convert(data: Any, kind: Any, path: str) -> Any:
    # This is imported at first use, because the command line prints its help without it.
    import msgspec

    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise RecordError(_explain(str(error), path)) from None


def _explain(message: str, path: str) -> str:
    """Converts msgspec's "Expected `int`, got `str` - at `$.a[0]`" to "a[0]: expected int, got str"."""
    said, _, place = message.replace("`", "").partition(" - at $")
    where = f"{path}{place}".removeprefix(".") or "value"
    return f"{where}: {said[:1].lower()}{said[1:]}"


@functools.cache
def _struct(kind: type) -> Any:
    """Returns a struct type with the fields of a record under their JSON names."""
    import msgspec

    hints = typing.get_type_hints(kind)
    fields = [
        (field.name, _hint_for_struct(hints[field.name]), _default(field))
        for field in dataclasses.fields(kind)
    ]
    return msgspec.defstruct(
        kind.__name__, fields, rename=camel_case, forbid_unknown_fields=True, kw_only=True
    )


def _default(field: dataclasses.Field[Any]) -> Any:
    import msgspec

    if field.default_factory is not dataclasses.MISSING:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field() if field.default is dataclasses.MISSING else msgspec.field(default=field.default)


def _hint_for_struct(hint: Any) -> Any:
    """Returns a type hint with structs in place of records."""
    if dataclasses.is_dataclass(hint):
        return _struct(typing.cast("type", hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None or origin is typing.Literal:
        return hint
    if origin is tuple and arguments[-1] is Ellipsis:
        origin, arguments = list, arguments[:1]  # JSON has lists only
    converted = tuple(_hint_for_struct(item) for item in arguments)
    if origin is types.UnionType:
        return typing.Union[converted]  # noqa: UP007 - of a tuple
    return origin[converted]


def camel_case(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)
