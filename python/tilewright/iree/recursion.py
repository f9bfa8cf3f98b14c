"""Check for recursive functions, on which IREE's whole-program optimisation never finishes."""

from __future__ import annotations

import re
from bisect import bisect
from graphlib import CycleError, TopologicalSorter

from tilewright.errors import ModelError

# Both patterns begin with text that can be searched for quickly, because megabytes of constants may lie between
# matches.
_FUNCTION = re.compile(r'"util\.func"\(\)[^\n]*?\bsym_name = "([^"]+)"')
_CALL = re.compile(r'"util\.call"\([^\n]*?\bcallee = @(?:"([^"]+)"|([\w.$-]+))')


def check_calls(text: str) -> None:
    """Raises `ModelError` for a function that calls itself, directly or through others.

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
        # IREE renames functions that it wraps for callers.
        cycle = [name.removeprefix("_").removesuffix("$async") for name in reversed(error.args[1])]
        raise ModelError(
            f"a function calls itself: {' -> '.join(cycle)}",
            where=f"function '{cycle[0]}'",
            hint="write it as a loop (scf.while)",
        ) from None
