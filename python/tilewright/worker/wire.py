"""Messages between this process and the worker: a JSON header and a blob of bytes."""

from __future__ import annotations

import json
import struct
from typing import IO, Any

_PREFIX = struct.Struct("<QQ")


def write_message(stream: IO[bytes], header: dict[str, Any], blob: bytes = b"") -> None:
    """Writes one message and flushes."""
    encoded = json.dumps(header).encode()
    stream.write(_PREFIX.pack(len(encoded), len(blob)))
    stream.write(encoded)
    stream.write(blob)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Reads one message; returns None if the other side is gone."""
    prefix = _read_exactly(stream, _PREFIX.size)
    if prefix is None:
        return None
    header_size, blob_size = _PREFIX.unpack(prefix)
    header = _read_exactly(stream, header_size)
    blob = _read_exactly(stream, blob_size)
    if header is None or blob is None:
        return None
    return json.loads(header), blob


def _read_exactly(stream: IO[bytes], size: int) -> bytes | None:
    data = stream.read(size)
    return data if len(data) == size else None
