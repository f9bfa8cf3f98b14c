"""Pages of the reference that are made from Python: the API, and the table of IREE's faults."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scripts.cells import cell

if TYPE_CHECKING:
    from tilewright.iree.known_faults import Fault

# Python


_PYTHON = """# Python API

**What can I import?** `import tilewright` gives these names; `tilewright.passes` and `tilewright.pipelines` drive
single [passes](passes.md). The [guide](../guide/tour.md) shows them at work; [compile](python-compile.md),
[classes](python-classes.md) and [errors](python-errors.md) have pages of their own. `help()` shows the same text.

## Functions

"""

_COMPILE = """# tilewright.compile

**What does the compiler take?** Everything is an argument of one function; [the other functions](python-api.md) have
a page together.

"""


def python_api_page() -> str:
    """Returns the public functions with their signatures and docstrings, but `compile`."""
    import tilewright

    lines = []
    objects = {name: getattr(tilewright, name) for name in tilewright.__all__}
    for name, function in objects.items():
        if inspect.isfunction(function) and function is not tilewright.compile:
            lines += [f"### tilewright.{name}", "", _signature(name, function), "", _docstring(function), ""]
    return _PYTHON + "\n".join(lines)


def python_compile_page() -> str:
    """Returns the signature and docstring of `compile`."""
    import tilewright

    compile = tilewright.compile
    return _COMPILE + "\n".join([_signature("compile", compile), "", _docstring(compile), ""])


def python_errors_page() -> str:
    """Returns the errors of the package."""
    import tilewright

    lines = [
        "# Python errors",
        "",
        "**What can go wrong?** Every error that a user can cause is a `TilewrightError`: its message says what is "
        "wrong, where, and what to do ([troubleshooting](../guide/troubleshooting.md)).",
        "",
        "| error | raised when |",
        "|---|---|",
    ]
    for name in tilewright.__all__:
        error = getattr(tilewright, name)
        if _is_error(error):
            lines.append(f"| `{name}({error.__mro__[1].__name__})` | {cell(inspect.getdoc(error) or '')} |")
    return "\n".join(lines) + "\n"


def python_classes_page() -> str:
    """Returns the public classes with their fields and members."""
    import tilewright

    parts = [
        "# Python classes",
        "",
        "**What do the functions of the [API](python-api.md) take and return?** A member's full text is in `help()`.",
        "",
    ]
    for name in tilewright.__all__:
        kind = getattr(tilewright, name)
        if inspect.isclass(kind) and not _is_error(kind):
            parts += [f"## tilewright.{name}", "", _docstring(kind), "", *_members(kind)]
    return "\n".join(parts)


IREE_FAULTS = {
    "iree-faults.md": ("Faults of IREE's compiler", "those of its compiler"),
    "iree-faults-onnx.md": ("Faults of IREE in ops of ONNX", "those in ops of ONNX"),
    "iree-faults-torch.md": ("Faults of IREE in ops of torch", "those in ops of torch"),
}
"""The pages of IREE's known faults, with a title and what other pages call them."""


def _page_of_fault(fault: Fault) -> str:
    if fault.pattern.startswith("torch."):
        return "iree-faults-torch.md"
    return "iree-faults-onnx.md" if fault.where.startswith("tilewright.frontends") else "iree-faults.md"


def iree_faults_page(page: str) -> str:
    """Returns one of the pages with IREE's known faults."""
    from tilewright.iree.known_faults import FAULTS

    others = [f"[{called}]({name})" for name, (_, called) in IREE_FAULTS.items() if name != page]
    lines = [
        f"# {IREE_FAULTS[page][0]}",
        "",
        "**Which faults of IREE 3.13 does Tilewright work around?** Programs of Tilewright do not show them. "
        "`python -m tilewright.iree.recheck` runs a small program for each through IREE alone, except where the last "
        "column says why not, and reports faults that are gone. What IREE's importer merely lacks is "
        f"[another table](onnx-rules.md), and so are {' and '.join(others)}.",
        "",
        "| ops | types | targets | symptom | evidence | instead | code |",
        "|---|---|---|---|---|---|---|",
    ]
    for fault in FAULTS.values():
        if _page_of_fault(fault) != page:
            continue
        file = fault.where.partition(":")[0].rpartition(".")[2]
        unchecked = "" if fault.program else f": {fault.unchecked}"
        cells = (fault.pattern, fault.types, fault.targets, fault.symptom, fault.evidence, fault.instead)
        lines.append(f"| {' | '.join(map(cell, cells))} | `{file}`{cell(unchecked)} |")
    return "\n".join(lines) + "\n"


def _is_error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Exception)


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    shown = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        shown.append(f"{parameter.name}: {parameter.annotation}{default}")
    result = f"{name}(\n    " + ",\n    ".join(shown) + f",\n) -> {signature.return_annotation}"
    short = f"{name}({', '.join(shown)}) -> {signature.return_annotation}"
    return f"```text\n{short if len(short) <= 100 else result}\n```"


def _docstring(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    lines: list[str] = []
    for line in text.splitlines():
        # Arguments become a list: "    name: what it is", continued with more indentation.
        argument = re.match(r" {4}(\w+): (.*)", line)
        if argument:
            lines.append(f"- `{argument[1]}`: {argument[2]}")
        elif line.startswith("        ") and lines and lines[-1].startswith(("- ", "  ")):
            lines.append(f"  {line.strip()}")
        elif line == "Arguments:":
            lines += ["Arguments:", ""]
        else:
            lines.append(line)
    return "\n".join(lines)


def _members(kind: type[Any]) -> list[str]:
    lines: list[str] = []
    if dataclasses.is_dataclass(kind):
        names = [f"`{field.name}`" for field in dataclasses.fields(kind) if not field.name.startswith("_")]
        lines += [f"Fields: {', '.join(names)}.", ""]
    rows = []
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            rows.append(f"| `.{name}` | {_first_sentence(member.fget)} |")
        elif callable(getattr(kind, name)) and inspect.getdoc(getattr(kind, name)):
            bound = getattr(kind, name)
            names = [n for n in inspect.signature(bound).parameters if n not in ("self", "cls")]
            rows.append(f"| `.{name}({', '.join(names)})` | {_first_sentence(bound)} |")
    if rows:
        lines += ["| member | what it is |", "|---|---|", *rows, ""]
    return lines


def _first_sentence(thing: Any) -> str:
    text = " ".join((inspect.getdoc(thing) or "").split())
    found = re.match(r".*?[.:](?= [A-Z]|$)", text)
    return cell(found[0] if found else text)
