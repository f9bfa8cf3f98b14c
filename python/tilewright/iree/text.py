"""What IREE's MLIR and ours spell differently in generic text.

The elements of a large `i1` constant are printed as hexadecimal data: one byte each by IREE 3.13's MLIR, one bit each
by MLIR 22.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

_BOOLEANS = re.compile(r'dense<"0x([0-9A-Fa-f]+)"> : ((?:tensor|vector)<([0-9x]*)xi1>)')

Bytes = npt.NDArray[np.uint8]


def from_iree(text: str) -> str:
    """IREE's text as MLIR 22 reads it."""
    return _convert(text, lambda data, count: np.packbits(data[:count], bitorder="little"))


def to_iree(text: str) -> str:
    """MLIR 22's text as IREE reads it."""
    return _convert(text, lambda data, count: np.unpackbits(data, bitorder="little")[:count])


def _convert(text: str, convert: Callable[[Bytes, int], Bytes]) -> str:
    def replace(match: re.Match[str]) -> str:
        digits, type_, shape = match.groups()
        count = math.prod(int(size) for size in shape.split("x") if size)
        data = convert(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), count)
        return f'dense<"0x{data.tobytes().hex().upper()}"> : {type_}'

    return _BOOLEANS.sub(replace, text)
