"""Interfaces of modules: the function that is called, and its signature as the module declares it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iree import runtime

from tilewright.errors import ProgramError
from tilewright.iree.versions import check_iree
from tilewright.records.signature import (
    Signature,
    signature_from_declaration,
)
from tilewright.runtime.held import HeldFile, hold_module


@dataclass(frozen=True)
class Interface:
    """Interface of a module, read without running it."""

    entry: str
    signature: Signature | None
    """Signature as the module declares it; modules that came from torch or ONNX do not."""


def read_interface(module: Path | HeldFile, *, entry: str | None) -> Interface:
    """Reads the interface of a module, which may be for another machine."""
    check_iree("iree-base-runtime")
    file = hold_module(module)
    return interface_of(load_module(runtime.VmInstance(), file), entry, file.path)


def load_module(instance: Any, file: HeldFile) -> Any:
    try:
        return runtime.VmModule.wrap_buffer(instance, file.buffer)
    except Exception as error:
        raise ProgramError(
            f"not a compiled module, or a truncated one: {reason_of(error)}",
            where=str(file.path),
            hint="compile it again",
        ) from error


def interface_of(module: Any, entry: str | None, path: Path) -> Interface:
    name = _choose_entry(module, entry, path)
    declaration = module.lookup_function(name).reflection.get("iree.abi.declaration")
    return Interface(name, signature_from_declaration(declaration) if declaration else None)


_INTERNAL = ("$async", "$at_load")
"""Ends of the names of functions that are not called by users: those that callers wait for, and those that return what
is computed when a module is loaded."""


def _choose_entry(module: Any, wanted: str | None, path: Path) -> str:
    exported: list[str] = module.function_names
    if wanted in exported:
        return wanted
    names = [n for n in exported if not n.startswith("__") and not n.endswith(_INTERNAL)]
    if wanted is not None:
        raise ProgramError(f"no function '{wanted}'; it has: {', '.join(names) or 'none'}", where=str(path))
    if len(names) == 1:
        return names[0]
    if not names:
        raise ProgramError("the model has no public function", where=str(path), hint="make one public")
    raise ProgramError(
        f"several functions: {', '.join(names)}", where=str(path), hint="choose one with entry="
    )


def reason_of(error: Exception) -> str:
    """Returns IREE's status on one line, without the position in IREE's source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]) or type(error).__name__
    _, mark, tail = text.partition(".c:")
    return tail.partition(": ")[2][:300] if mark and tail else text[:300]
