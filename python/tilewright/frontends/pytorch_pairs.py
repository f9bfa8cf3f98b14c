"""A complex tensor of PyTorch as a pair."""

from __future__ import annotations

from typing import Any, NamedTuple


class Complex(NamedTuple):
    """The parts of a complex tensor, or of a number."""

    real: Any
    imag: Any
