"""Functions that call themselves, of which IREE's optimisation of whole programs finds no end."""

from __future__ import annotations

import re
from bisect import bisect
from graphlib import CycleError, TopologicalSorter

from tilewright.errors import ModelError

# Both begin with what can be searched for quickly: there may be megabytes of constants in between.
_FUNCTION = re.compile(r'"util\.func"\(\)[^\n]*?\bsym_name = "([^"]+)"')
_CALL = re.compile(r'"util\.call"\([^\n]*?\bcallee = @(?:"([^"]+)"|([\w.$-]+))')


def check_calls(text: str) -> None:
    """Raises `ModelError` for a function that calls itself, through others or at once.

    `text` is a module in generic form at the phase `preprocessing`.
    """
    calls: dict[str, set[str]] = {}
    functions = [(function.start(), function[1]) for function in _FUNCTION.finditer(text)]
    for call in _CALL.finditer(text):
        _, caller = functions[bisect(functions, (call.start(), "")) - 1]
        calls.setdefault(caller, set()).add(call[1] or call[2])
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        # What IREE wraps for its callers it keeps under another name.
        circle = [name.removeprefix("_").removesuffix("$async") for name in reversed(error.args[1])]
        raise ModelError(
            f"a function calls itself: {' -> '.join(circle)}",
            where=f"function '{circle[0]}'",
            hint="write it as a loop (scf.while)",
        ) from None
