"""The end of the interpreter, as far as native objects are concerned.

Python ends in an order of its own, and where other extension modules keep modules alive (PyTorch does) it does not take
all objects apart before IREE's runtime is unloaded, which then prints a page about leaks. So what holds its objects
lets them go before that, in an `atexit` hook: the newest first, since it may be made of what is older.
"""

from __future__ import annotations

import atexit
import itertools
import os
import weakref
from typing import Protocol

from tilewright.errors import ProgramError


class Holder(Protocol):
    """Something that holds native objects."""

    def release(self) -> None:
        """Lets go of them; what needs them raises `ProgramError` from then on."""


_holders: weakref.WeakValueDictionary[int, Holder] = weakref.WeakValueDictionary()
_numbers = itertools.count()
_is_over = False
_process = os.getpid()


def release_at_exit(holder: Holder) -> None:
    """Has a holder let go when the interpreter ends, if it is alive then."""
    _holders[next(_numbers)] = holder


def check_not_over(where: str) -> None:
    """Raises a `ProgramError` where the interpreter has begun to end, too late for anything native."""
    if _is_over:
        raise ended(where)


def ended(where: str) -> ProgramError:
    return ProgramError(
        "it cannot run any more, because the interpreter is ending",
        where=where,
        hint="call it before `atexit` hooks that were registered before tilewright was imported",
    )


@atexit.register
def _release_all() -> None:
    global _is_over
    _is_over = True
    if os.getpid() != _process:
        return  # The threads of a device are not in a fork, and would be waited for.
    for _, holder in sorted(_holders.items(), reverse=True):
        holder.release()
