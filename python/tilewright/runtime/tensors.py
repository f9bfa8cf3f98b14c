"""The tensors that the launches of a program read and write, for running its kernels without IREE.

`tile-print-launches` numbers the tensors of a program and gives the origin of each: an argument, a weight or a
constant. Random numbers replace the result of an IREE op that nothing here can compute.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.errors import ProgramError
from tilewright.records.report import first_name
from tilewright.records.signature import Array, element_dtype
from tilewright.runtime.stored import read_parameter

_PARAMETER = re.compile(r'#stream\.parameter\.named<(?:"(?P<scope>[^"]*)"::)?"(?P<name>[^"]*)">')


@dataclass(frozen=True, order=True)
class Invented:
    """An op of IREE whose result is replaced by random numbers."""

    op: str
    location: str
    """Name in the model; "" if it is not known."""

    def __str__(self) -> str:
        return f"{self.op} ({self.location})" if self.location else self.op


class LaunchTensors:
    """The tensors of `tile-print-launches`, made on first use.

    `compute` returns what IREE computes, given the tensor's number and inputs (`foreign`).
    """

    def __init__(
        self,
        described: Sequence[Mapping[str, Any]],
        arguments: Sequence[Array],
        archives: Mapping[str, Path],
        compute: Callable[[int, Sequence[Array]], Array] | None = None,
    ) -> None:
        self._described, self._arguments, self._archives = described, arguments, archives
        self._compute = compute
        self._known: dict[int, Array] = {}
        self._unreal: set[int] = set()
        self.invented: set[Invented] = set()

    def get(self, number: int) -> Array:
        """Returns the content of a tensor; its memory is not shared with any other tensor that may be written."""
        if number not in self._known:
            self._known[number] = np.ascontiguousarray(self._make(number))
        tensor = self._known[number]
        return tensor if tensor.flags.writeable else tensor.copy()

    def new(self, number: int) -> Array:
        """Returns memory for the result of a launch."""
        shape, dtype = self._type(number)
        return np.zeros(shape, dtype)

    def shape(self, number: int) -> tuple[int, ...]:
        return self._type(number)[0]

    def size(self, number: int) -> int:
        """Returns the size of a tensor in bytes."""
        shape, dtype = self._type(number)
        return math.prod(shape) * dtype.itemsize

    def put(self, numbers: Sequence[int], made: Sequence[Array], *, is_real: bool) -> None:
        """Stores the results of a launch; they are real if everything that the launch read was."""
        self._known.update(zip(numbers, made, strict=True))
        if not is_real:
            self._unreal.update(numbers)

    def forget_dependents(self, numbers: Collection[int]) -> None:
        """Forgets what IREE computed from tensors that have changed since, as in the next step of a loop."""
        changed, before = set(numbers), -1
        while len(changed) > before:
            before = len(changed)
            changed |= {
                number
                for number, described in enumerate(self._described)
                if changed.intersection(described.get("inputs", ()))
            }
        for number in changed.difference(numbers):
            self._known.pop(number, None)

    def are_real(self, numbers: Sequence[int]) -> bool:
        """True if none of the tensors depends on random replacements."""
        for number in numbers:
            self.get(number)
        return not self._unreal.intersection(numbers)

    def _type(self, number: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        described = self._described[number]
        return tuple(described["shape"]), element_dtype(described["element"])

    def _make(self, number: int) -> Array:
        described, (shape, dtype) = self._described[number], self._type(number)
        if "argument" in described:
            return np.asarray(self._arguments[described["argument"]], dtype).reshape(shape)
        if "base64" in described:
            return constant_of(described, shape, dtype)
        if parameter := parameter_of(described):
            scope, name = parameter
            if scope not in self._archives:
                raise ProgramError("its weights are missing", where=f"scope '{scope}'")
            return read_parameter(self._archives[scope], name, shape, dtype).reshape(shape)
        if described.get("op") == "tensor.empty":
            return np.zeros(shape, dtype)  # whose elements nothing reads before they are written
        if self._compute and "function" in described:
            if not self.are_real(described["inputs"]):
                self._unreal.add(number)
            return self._compute(number, [self.get(read) for read in described["inputs"]])
        self.invented.add(Invented(described.get("op", "a global"), first_name(described.get("loc", ""))))
        self._unreal.add(number)
        drawn = np.random.default_rng(number).standard_normal(shape)
        return (drawn > 0 if dtype == np.bool_ else drawn).astype(dtype)


def parameter_of(described: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns the scope and the name of the parameter that a tensor is, or None if it is none."""
    parameter = _PARAMETER.search(described.get("global", ""))
    return (parameter["scope"] or "", parameter["name"]) if parameter else None


def constant_of(described: Mapping[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Returns the content of a tensor that is a constant of the module."""
    data, is_splat = base64.b64decode(described["base64"]), described["splat"]
    if dtype == np.bool_ and not is_splat:
        # MLIR packs booleans eight to a byte.
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return bits[: int(np.prod(shape))].astype(np.bool_).reshape(shape)
    elements = np.frombuffer(data, dtype if dtype != np.bool_ else np.uint8)
    return np.broadcast_to(elements.astype(dtype)[0], shape) if is_splat else elements.reshape(shape)
