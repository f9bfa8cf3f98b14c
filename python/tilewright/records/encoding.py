"""Dataclasses to JSON and back: snake_case fields are camelCase members, lists and records nest.

msgspec reads: it checks kinds and says where something does not fit. It renames members and refuses unknown ones only
for its own structs, so a record is read as a struct of the same fields first.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
import typing
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
    """A record, or a list of records or plain values, as plain JSON data.

    Nothing is checked: a user may have set anything, and the compiler says what is wrong with it.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {camel_case(field.name): to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type[Record], data: Any) -> Record:
    """Builds a record; a `RecordError` for members that are unknown or missing, and values of other kinds."""
    import msgspec

    read = _convert(data, _struct(typing.cast("type", kind)), "")
    return msgspec.convert(read, kind, from_attributes=True)


def check_kinds(kind: Any, value: Any, path: str = "value") -> None:
    """Raises `RecordError` where something in `value`, which was read from JSON, is not what the hints of its records
    say."""
    import msgspec

    _convert(msgspec.to_builtins(value), kind, path)


def _convert(data: Any, kind: Any, path: str) -> Any:
    # Imported at first use: the command line has help to give where it is missing.
    import msgspec

    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise RecordError(_explain(str(error), path)) from None


def _explain(message: str, path: str) -> str:
    """msgspec's "Expected `int`, got `str` - at `$.a[0]`" as "a[0]: expected int, got str"."""
    said, _, place = message.replace("`", "").partition(" - at $")
    where = f"{path}{place}".removeprefix(".") or "value"
    return f"{where}: {said[:1].lower()}{said[1:]}"


@functools.cache
def _struct(kind: type) -> Any:
    """A struct with the fields of a record under their names in JSON."""
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
    """A hint with structs in place of records."""
    if dataclasses.is_dataclass(hint):
        return _struct(typing.cast("type", hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None or origin is typing.Literal:
        return hint
    if origin is tuple and arguments[-1] is Ellipsis:
        origin, arguments = list, arguments[:1]  # as JSON has it
    converted = tuple(_hint_for_struct(item) for item in arguments)
    if origin is types.UnionType:
        return typing.Union[converted]  # noqa: UP007 - of a tuple
    return origin[converted]


def camel_case(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)
