"""Writing of parameter files (.irpa), byte for byte as IREE writes them (iree/schemas/parameter_archive.h).

IREE's own writer copies the data into a mapped file and holds Python's lock meanwhile: 1.5 s for 320 MB on a Zen 3,
where writing takes 0.2 to 0.5 s and other threads go on. Besides, a full disk is an error here, and ends the process
there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.records.signature import Array

_HEADER = struct.Struct("<4sHHQQQQ6Q")
"""Magic, version (two numbers), size of the header, next header, flags, number of entries, and the offset and length of
the table of entries, of their names, and of the data."""
_ENTRY = struct.Struct("<QIQ4QQ")
"""Size, type, flags, offset and length of the name and of metadata, alignment."""
_RANGE = struct.Struct("<QQ")
_SPLAT = struct.Struct("<Q16sB")
_SPLAT_TYPE, _DATA_TYPE = 1, 2
_ENTRY_ALIGNMENT, _DATA_ALIGNMENT, _FILE_ALIGNMENT = 16, 64, 4096


@dataclass(frozen=True)
class Data:
    """A parameter with bytes of its own."""

    length: int
    blocks: Iterable[Array]
    """The bytes, one array after the other; they are made when they are written."""


@dataclass(frozen=True)
class Splat:
    """A parameter that repeats a pattern of 1, 2, 4, 8 or 16 bytes."""

    length: int
    pattern: bytes


def write_parameters(path: Path, parameters: Mapping[str, Data | Splat]) -> None:
    """Writes parameters by name. Raises `OSError` if that fails, and `ValueError` if blocks have another length."""
    table, names, places, end = _describe(parameters)
    table_at = _aligned(_HEADER.size, _ENTRY_ALIGNMENT)
    names_at = table_at + len(table)
    data_at = _aligned(names_at + len(names), _DATA_ALIGNMENT if places else 1)
    header = _HEADER.pack(
        b"IRPA", 0, 0, _HEADER.size, 0, 0, len(parameters),
        table_at, len(table), names_at, len(names), data_at, end,
    )  # fmt: skip
    with path.open("wb") as file:
        file.write(header.ljust(table_at, b"\0") + table + names)
        for name, place in places.items():
            parameter = parameters[name]
            assert isinstance(parameter, Data)
            file.seek(data_at + place)
            for block in parameter.blocks:
                file.write(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)
            if file.tell() != data_at + place + parameter.length:
                raise ValueError(
                    f"parameter '{name}' has not the {parameter.length} bytes that it should have"
                )
        file.truncate(_aligned(data_at + end, _FILE_ALIGNMENT))


def _describe(parameters: Mapping[str, Data | Splat]) -> tuple[bytes, bytes, dict[str, int], int]:
    """Returns the table of entries, their names, the places of the data by name, and its end, both from its start."""
    table, names, places, end = b"", b"", dict[str, int](), 0
    for name, parameter in parameters.items():
        table = table.ljust(_aligned(len(table), _ENTRY_ALIGNMENT), b"\0")
        key = name.encode()
        if isinstance(parameter, Data):
            places[name] = _aligned(end, _DATA_ALIGNMENT)
            end = places[name] + parameter.length
            body, kind, alignment = _RANGE.pack(places[name], parameter.length), _DATA_TYPE, _DATA_ALIGNMENT
        else:
            pattern = parameter.pattern
            body, kind, alignment = _SPLAT.pack(parameter.length, pattern, len(pattern)), _SPLAT_TYPE, 0
        table += _ENTRY.pack(_ENTRY.size + len(body), kind, 0, len(names), len(key), 0, 0, alignment) + body
        names += key
    return table, names, places, end


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
