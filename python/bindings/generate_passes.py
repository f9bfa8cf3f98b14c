"""Generator of the Python module that has one typed function for every pass in Passes.td."""

from __future__ import annotations

import argparse
import json
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_HEADER = '''"""Functions that run one pass each. Generated from Passes.td; do not edit."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.module import Diagnostic, Module
from tilewright.pipelines import run_pass

'''

# Python annotation for the C++ type of an option; list options become sequences of these.
_TYPES = {
    "bool": "bool",
    "std::string": "str",
    "int": "int",
    "unsigned": "int",
    "int32_t": "int",
    "int64_t": "int",
    "uint64_t": "int",
    "size_t": "int",
    "float": "float",
    "double": "float",
}
_ANCHORS = {"": "builtin.module", "::mlir::ModuleOp": "builtin.module", "::mlir::func::FuncOp": "func.func"}


class GenerationError(Exception):
    """A pass that the generator cannot express in Python."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", type=Path, help="the TableGen file")
    parser.add_argument("-o", dest="output", type=Path, required=True, help="the Python file to write")
    parser.add_argument("--tblgen", default="llvm-tblgen", help="llvm-tblgen")
    parser.add_argument("-I", dest="include", action="append", default=[], help="include directory")
    options = parser.parse_args(arguments)
    includes = [f"-I{folder}" for entry in options.include for folder in entry.split(";")]
    command = [options.tblgen, "-dump-json", str(options.input), *includes]
    records = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    try:
        text = generate(records)
    except GenerationError as error:
        print(f"error: {options.input}: {error}", file=sys.stderr)
        return 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text)
    return 0


def generate(records: dict[str, Any]) -> str:
    """Returns the text of the module, for TableGen's records as JSON data."""
    passes = [records[name] for name in records["!instanceof"]["PassBase"]]
    functions = [_function(record, records) for record in passes]
    names = ",\n    ".join(f'"{_snake(record["!name"])}"' for record in passes)
    return _HEADER + f"__all__ = [\n    {names},\n]\n" + "".join(f"\n\n{function}" for function in functions)


def _function(record: dict[str, Any], records: dict[str, Any]) -> str:
    options = [_Option(records[reference["def"]]) for reference in record["options"]]
    parameters = "".join(f", {option.parameter}" for option in options)
    parameters = f"module: Module, *{parameters}" if options else "module: Module"
    values = ", ".join(f'"{option.argument}": {option.name}' for option in options)
    call = f'run_pass(module, "{record["argument"]}", anchor="{anchor_of(record)}", options={{{values}}})'
    return (
        f"def {_snake(record['!name'])}({parameters}) -> list[Diagnostic]:\n"
        + textwrap.indent(_docstring(record, options), "    ")
        + f"    return {call}\n"
    )


def _docstring(record: dict[str, Any], options: Sequence[_Option]) -> str:
    lines = [f'"""{record["summary"]}.', ""]
    description = textwrap.dedent(record["description"]).strip("\n")
    lines += [line.rstrip() for line in description.splitlines()]
    if options:
        lines += ["", "Options:"]
        lines += [f"    {option.name}: {option.description}" for option in options]
    return "\n".join(lines).replace("\\", "\\\\").rstrip() + '\n"""\n'


class _Option:
    def __init__(self, record: dict[str, Any]) -> None:
        self.argument: str = record["argument"]
        self.description: str = record["description"]
        self.name = self.argument.replace("-", "_")
        if keyword.iskeyword(self.name):
            self.name += "_"
        base = record["type"].removeprefix("::")
        if base not in _TYPES:
            # Enums are passed by name.
            base = "std::string"
        annotation = _TYPES[base]
        if "ListOption" in record["!superclasses"]:
            self.parameter = f"{self.name}: Sequence[{annotation}] = ()"
        else:
            self.parameter = f"{self.name}: {_with_default(annotation, record.get('defaultValue') or '')}"


def _with_default(annotation: str, value: str) -> str:
    value = value.strip()
    if annotation == "bool" and value in ("true", "false"):
        return f"bool = {value.capitalize()}"
    if annotation == "str" and re.fullmatch(r'"[^"\\]*"', value):
        return f"str = {value}"
    if annotation in ("int", "float") and re.fullmatch(r"-?[\d.]+(e-?\d+)?", value):
        return f"{annotation} = {value}"
    # The option has no default, or a C++ expression as default, which the pass itself evaluates.
    return f"{annotation} | None = None"


def anchor_of(record: dict[str, Any]) -> str:
    """Returns the name of the op that the pass runs on; a pass that takes any op runs on the module."""
    # The name of the base class says it, as in "::mlir::OperationPass<::mlir::func::FuncOp>".
    match = re.fullmatch(r"(?:::mlir::)?(?:OperationPass|InterfacePass)<(.*)>", record["baseClass"])
    operation = match[1] if match else ""
    if operation in _ANCHORS:
        return _ANCHORS[operation]
    ours = re.fullmatch(r"(?:::)?(?:tilewright::)?tile::(\w+)Op", operation)
    if not ours:
        raise GenerationError(f"pass {record['!name']} runs on {operation}, which has no known op name")
    return f"tile.{_snake(ours[1])}"


def _snake(name: str) -> str:
    return "_".join(_words(name)).lower()


def _words(name: str) -> Iterator[str]:
    return (match[0] for match in re.finditer(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+", name))


if __name__ == "__main__":
    sys.exit(main())
