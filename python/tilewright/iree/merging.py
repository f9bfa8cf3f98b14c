"""Joins the modules that a dynamic model became for several shapes to one, whose entry chooses by the shape.

All are at IREE's preprocessing phase, where functions take and return buffer views. Everything of a module for a shape
gets names of its own, and its entry becomes private. The entry of the dynamic module moves behind a new one that
compares the sizes of its arguments with those of each shape, in order, and calls the dynamic one if none fits. Nothing
of that is special to Tilewright: IREE compiles and runs the module like any other.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilewright.errors import IreeError
from tilewright.iree.compiler import IreeCompiler

_SHARED = "__device_"
"""Beginning of the names of globals that say where a program runs, which all modules have in common."""

OpenSizes = Sequence[tuple[int, int, int]]
"""Sizes that a module is for: argument, axis and size of each."""


@dataclass(frozen=True)
class ShapeModule:
    """A module for one shape."""

    text: str
    sizes: OpenSizes


def merge_shapes(
    compiler: IreeCompiler, dynamic: str, modules: Sequence[ShapeModule], *, entry: str
) -> bytes:
    """Returns the joined module as bytecode, at the phase `preprocessing`. Raises `IreeError`."""
    texts = [dynamic, *(module.text for module in modules)]
    encoded = [text.encode() for text in texts]
    header = {
        "request": f"{__name__}:answer_merge",
        "step": "the joining of modules for shapes",
        "lengths": [len(text) for text in encoded],
        "sizes": [list(map(list, module.sizes)) for module in modules],
        "entry": entry,
    }
    answer, merged, _ = compiler.ask(header, b"".join(encoded))
    if not answer["ok"]:
        raise IreeError(
            f"modules for shapes cannot be joined: {answer['error']}", details=answer.get("trace", "")
        )
    return merged


def answer_merge(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Joins modules in the worker."""
    from iree.compiler import ir

    texts, start = [], 0
    for length in header["lengths"]:
        texts.append(blob[start : start + length].decode())
        start += length
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        merged = ir.Module.parse(texts[0])
        entry = _Entry(ir, merged, header["entry"])
        for number, text in enumerate(texts[1:]):
            _move(ir, ir.Module.parse(text), merged, entry, f"shape{number}_")
        entry.choose(header["sizes"])
        merged.operation.verify()
        stream = io.BytesIO()
        merged.operation.write_bytecode(stream)
    return {"ok": True}, stream.getvalue()


def _symbol(operation: Any) -> str:
    return str(operation.attributes["sym_name"].value) if "sym_name" in operation.attributes else ""


def _functions(module: Any) -> dict[str, Any]:
    return {
        _symbol(operation.operation): operation.operation
        for operation in module.body.operations
        if operation.operation.name == "util.func"
    }


class _Entry:
    """The function that computes: `entry$async` if the model came from torch or ONNX, which `entry` calls and waits
    for, otherwise `entry` itself."""

    def __init__(self, ir: Any, merged: Any, name: str) -> None:
        self._ir, self._merged = ir, merged
        functions = _functions(merged)
        self.is_waited_for = f"{name}$async" in functions
        self.wrapper = name
        self.name = f"{name}$async" if self.is_waited_for else name
        self._function = functions[self.name]

    def choose(self, sizes: Sequence[OpenSizes]) -> None:
        """Makes the function private, and one of its name that chooses between it and those for shapes."""
        ir, old = self._ir, self._function
        kind = ir.FunctionType(ir.TypeAttr(old.attributes["function_type"]).value)
        chooser = ir.Operation.create(
            "util.func",
            attributes={name: old.attributes[name] for name in old.attributes},
            regions=1,
            ip=ir.InsertionPoint(self._merged.body),
        )
        old.attributes["sym_name"] = ir.StringAttr.get(f"dynamic_{self.name}")
        old.attributes["sym_visibility"] = ir.StringAttr.get("private")
        block = chooser.regions[0].blocks.append(*kind.inputs)
        with ir.InsertionPoint(block):
            chosen = self._body(list(block.arguments), list(kind.results), sizes)
            ir.Operation.create("util.return", operands=chosen)

    def _body(self, arguments: list[Any], results: list[Any], shapes: Sequence[OpenSizes]) -> list[Any]:
        found: dict[tuple[int, int], Any] = {}
        for argument, axis, _ in (place for shape in shapes for place in shape):
            if (argument, axis) not in found:
                found[argument, axis] = self._make(
                    "hal.buffer_view.dim", [self._index], [arguments[argument]], index=self._number(axis)
                )[0]
        return self._chain(arguments, results, shapes, 0, found)

    def _chain(
        self,
        arguments: list[Any],
        results: list[Any],
        shapes: Sequence[OpenSizes],
        number: int,
        found: Mapping[tuple[int, int], Any],
    ) -> list[Any]:
        """Makes the call for the shape `number` or a later one, and returns its results."""
        if number == len(shapes):
            return self._call(f"dynamic_{self.name}", arguments, results)
        is_one = self._compare(shapes[number], found)
        branch = self._ir.Operation.create("scf.if", results=results, operands=[is_one], regions=2)
        with self._block(branch.regions[0]) as end:
            end(self._call(f"shape{number}_{self.name}", arguments, results))
        with self._block(branch.regions[1]) as end:
            end(self._chain(arguments, results, shapes, number + 1, found))
        return list(branch.results)

    def _compare(self, shape: OpenSizes, found: Mapping[tuple[int, int], Any]) -> Any:
        ir, all_equal = self._ir, None
        for argument, axis, size in shape:
            wanted = self._make("arith.constant", [self._index], [], value=self._number(size))[0]
            equal = self._make(
                "arith.cmpi",
                [ir.IntegerType.get_signless(1)],
                [found[argument, axis], wanted],
                predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0),
            )[0]
            all_equal = (
                equal if all_equal is None else self._make("arith.andi", [equal.type], [all_equal, equal])[0]
            )
        return all_equal

    def _call(self, callee: str, arguments: list[Any], results: list[Any]) -> list[Any]:
        return self._make("util.call", results, arguments, callee=self._ir.FlatSymbolRefAttr.get(callee))

    @contextmanager
    def _block(self, region: Any) -> Iterator[Any]:
        block = region.blocks.append()
        with self._ir.InsertionPoint(block):
            yield lambda values: self._ir.Operation.create("scf.yield", operands=values)

    def _make(self, name: str, results: list[Any], operands: list[Any], **attributes: Any) -> list[Any]:
        return list(
            self._ir.Operation.create(name, results=results, operands=operands, attributes=attributes).results
        )

    @property
    def _index(self) -> Any:
        return self._ir.IndexType.get()

    def _number(self, value: int) -> Any:
        return self._ir.IntegerAttr.get(self._index, value)


def _move(ir: Any, module: Any, merged: Any, entry: _Entry, prefix: str) -> None:
    """Moves what is in a module to the end of another, with names of its own."""
    for operation in list(module.body.operations):
        name = _symbol(operation.operation)
        if not name or name.startswith(_SHARED):
            continue
        ir.SymbolTable.replace_all_symbol_uses(name, prefix + name, module.operation)
        operation.operation.attributes["sym_name"] = ir.StringAttr.get(prefix + name)
    for operation in list(module.body.operations):
        moved = operation.operation
        name = _symbol(moved)
        if name.startswith(_SHARED) or (entry.is_waited_for and name == prefix + entry.wrapper):
            continue
        if name:
            moved.attributes["sym_visibility"] = ir.StringAttr.get("private")
        moved.detach_from_parent()
        merged.body.append(moved)
