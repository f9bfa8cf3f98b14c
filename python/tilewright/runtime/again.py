"""Compilations of the same model in other ways, which turn out to be needed when a program is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_Program = TypeVar("_Program")


@dataclass(frozen=True, kw_only=True)
class Again(Generic[_Program]):
    """Functions that compile the model of a program again; None where there is nothing to change, or no model."""

    without_barriers: Callable[[], _Program] | None = None
    """Without grid barriers, for a GPU that cannot run all blocks of a kernel at once."""
    deployed: Callable[[], _Program] | None = None
    """With a module for IREE."""
