"""Releases native objects before the interpreter ends.

Python destroys objects in an order of its own. Where another extension module keeps modules alive (as PyTorch does),
some objects outlive IREE's runtime, which then prints a page about leaks. An `atexit` hook therefore releases all
holders first, the newest before the older ones that they may be made of.
"""

from __future__ import annotations

import atexit
import itertools
import os
import weakref
from typing import Protocol

from tilewright.errors import ProgramError


class Holder(Protocol):
    """Protocol of objects that hold native objects."""

    def release(self) -> None:
        """Releases the native objects; operations that need them raise `ProgramError` from then on."""


_holders: weakref.WeakValueDictionary[int, Holder] = weakref.WeakValueDictionary()
_numbers = itertools.count()
_is_over = False
_process = os.getpid()


def release_at_exit(holder: Holder) -> None:
    """Releases `holder` when the interpreter ends, if it is still alive then."""
    _holders[next(_numbers)] = holder


def check_not_over(where: str) -> None:
    """Raises `ProgramError` if the interpreter has begun to end, when native objects may no longer be made."""
    if _is_over:
        raise ended(where)


def ended(where: str) -> ProgramError:
    return ProgramError(
        "it can no longer run, because the interpreter is ending",
        where=where,
        hint="call it before `atexit` hooks that were registered before tilewright was imported",
    )


@atexit.register
def _release_all() -> None:
    global _is_over
    _is_over = True
    if os.getpid() != _process:
        return  # A forked process does not have the threads of a device, and waiting for them would never end.
    for _, holder in sorted(_holders.items(), reverse=True):
        holder.release()
