"""Conversion between the generic text of IREE's MLIR and of ours.

The two print the elements of a large `i1` constant as different hexadecimal data: IREE 3.13's MLIR has one byte for
each, MLIR 22 one bit.
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
    """Converts IREE's text to the form that MLIR 22 reads."""
    return _convert(text, lambda data, count: np.packbits(data[:count], bitorder="little"))


def to_iree(text: str) -> str:
    """Converts MLIR 22's text to the form that IREE reads."""
    return _convert(text, lambda data, count: np.unpackbits(data, bitorder="little")[:count])


def _convert(text: str, convert: Callable[[Bytes, int], Bytes]) -> str:
    def replace(match: re.Match[str]) -> str:
        digits, type_, shape = match.groups()
        count = math.prod(int(size) for size in shape.split("x") if size)
        data = convert(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), count)
        return f'dense<"0x{data.tobytes().hex().upper()}"> : {type_}'

    return _BOOLEANS.sub(replace, text)
