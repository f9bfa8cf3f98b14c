"""Parameter files with weights in the layout that kernels read.

The compiler describes each such parameter by a recipe that makes it of the original parameters. All steps but products
move elements and do not change them, so they are carried out on plain unsigned integers of the element's size, one
parameter at a time. The old file is mapped, and weights are made as they are written, so that no more than one is held
in memory.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from iree import runtime

from tilewright.errors import CompileError, ModelError, OutputError
from tilewright.records.signature import Array
from tilewright.runtime.held import HeldFile
from tilewright.runtime.parameter_file import Data, Splat, write_parameters

Archives = Mapping[str, Path]
"""Parameter files, by scope."""


@dataclass(frozen=True)
class StoredWeight:
    """A parameter to store, and the recipe that makes it."""

    scope: str
    name: str
    element_bytes: int
    recipe: Mapping[str, Any]
    """Recipe in the format of `tile-store-weights`: a step, its sizes and the recipe that it applies to."""

    @property
    def bytes(self) -> int:
        """Size in the file, in bytes."""
        return int(math.prod(self.recipe["shape"])) * self.element_bytes


@dataclass(frozen=True)
class StoredWeights:
    """Differences between the parameter files of a program and those of its model."""

    weights: tuple[StoredWeight, ...] = ()
    unused: frozenset[tuple[str, str]] = frozenset()
    """Scope and name of parameters that the program does not read."""

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> StoredWeights:
        """Reads the output of `tile-store-weights`."""
        return StoredWeights(
            tuple(
                StoredWeight(entry["scope"], entry["name"], entry["element_bytes"], entry["recipe"])
                for entry in data.get("parameters", ())
            ),
            frozenset((entry["scope"], entry["name"]) for entry in data.get("unused", ())),
        )

    @property
    def sources(self) -> frozenset[str]:
        """Scopes of the files that the weights are made of."""
        return frozenset(scope for weight in self.weights for scope in _scopes(weight.recipe))

    def write(self, archives: Archives, directory: Path) -> dict[str, Path]:
        """Writes a file in `directory` for every scope that changes, or whose file is no .irpa (a .safetensors or
        .gguf).

        Returns all of the program's files, by scope.
        """
        changed = {weight.scope for weight in self.weights}
        changed |= {scope for scope, path in archives.items() if path.suffix.lower() != ".irpa"}
        sources = {
            scope: load_parameters(path)
            for scope, path in archives.items()
            if scope in changed | self.sources
        }
        written = {scope: self._write_scope(scope, sources, archives, directory) for scope in changed}
        return {**archives, **written}

    def _write_scope(
        self, scope: str, sources: Mapping[str, dict[str, Any]], archives: Archives, directory: Path
    ) -> Path:
        weights = {weight.name: weight for weight in self.weights if weight.scope == scope}
        kept = {n: entry for n, entry in sources[scope].items() if (scope, n) not in self.unused}
        if taken := sorted(kept.keys() & weights.keys()):
            raise ModelError(
                "has the name of a packed weight", where=f"{archives[scope]}, parameter '{taken[0]}'"
            )
        made = {
            name: Data(weight.bytes, _blocks(weight.recipe, weight.element_bytes, sources, archives))
            for name, weight in weights.items()
        }
        path = _temporary(directory, scope)
        try:
            write_parameters(path, {**{name: _as_it_is(entry) for name, entry in kept.items()}, **made})
            final = directory / f"{quote(scope, safe='')}.packed.irpa"
            path.replace(final)
        except OSError as error:
            path.unlink(missing_ok=True)
            size = sum(entry.length for entry in kept.values()) + sum(
                weight.bytes for weight in weights.values()
            )
            raise OutputError(
                "the weights cannot be written",
                where=str(directory),
                hint=f"free {size / 1e6:.1f} MB of disk space, or set TMPDIR to another folder",
            ) from error
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return final


def join_archives(
    programs: Sequence[Archives], directory: Path
) -> tuple[dict[str, Path], list[dict[tuple[str, str], str]]]:
    """Joins the parameter files of several programs; a parameter that several have under the same name and with the
    same bytes is stored once.

    Returns the files by scope and, for each program, the new names of those parameters, by scope and name, whose names
    other programs have for other bytes.
    """
    joined: dict[str, Path] = {}
    renamed: list[dict[tuple[str, str], str]] = [{} for _ in programs]
    for scope in dict.fromkeys(scope for archives in programs for scope in archives):
        paths = [archives.get(scope) for archives in programs]
        different = list(dict.fromkeys(path for path in paths if path is not None))
        if len(different) == 1:
            joined[scope] = different[0]
            continue
        taken: dict[str, Any] = {}
        for number, path in enumerate(paths):
            for name, entry in (load_parameters(path) if path is not None else {}).items():
                own = name if name not in taken or _is_equal(taken[name], entry) else f"{name}/shape{number}"
                if own != name:
                    renamed[number][scope, name] = own
                if own not in taken:
                    taken[own] = entry
        joined[scope] = directory / f"{quote(scope, safe='')}.joined.irpa"
        try:
            write_parameters(joined[scope], {name: _as_it_is(entry) for name, entry in taken.items()})
        except OSError as error:
            size = sum(entry.length for entry in taken.values())
            raise OutputError(
                "the weights cannot be written",
                where=str(directory),
                hint=f"free {size / 1e6:.1f} MB of disk space, or set TMPDIR to another folder",
            ) from error
    return joined, renamed


def _is_equal(one: Any, other: Any) -> bool:
    """True if two parameters have the same bytes."""
    if one.length != other.length or one.is_splat != other.is_splat:
        return False
    if one.is_splat:
        return bool(one.splat_pattern == other.splat_pattern)
    first, second = (np.frombuffer(entry.file_view, np.uint8) for entry in (one, other))
    return bool(np.array_equal(first, second))


def parameters_in(recipe: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the parameters of a recipe."""
    if recipe["step"] == "parameter":
        yield recipe
    else:
        for part in recipe["of"]:
            yield from parameters_in(part)


def _scopes(recipe: Mapping[str, Any]) -> set[str]:
    """Returns the scopes of the files that a recipe reads."""
    return {parameter["scope"] for parameter in parameters_in(recipe)}


def load_parameters(path: Path) -> dict[str, Any]:
    """Returns the parameters of a file, mapped; `array_of` takes them."""
    if not path.is_file():
        raise ModelError("no such parameter file", where=str(path))
    index = runtime.ParameterIndex()
    try:
        index.load(str(path))
    except (RuntimeError, ValueError, IndexError) as error:
        raise ModelError("not a parameter file, or a truncated one", where=str(path)) from error
    return dict(index.items())


def view_parameter(archive: Path, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Returns a parameter of a file, mapped."""
    return array_of(load_parameters(archive).get(name), shape, dtype, where=f"{archive}, parameter '{name}'")


def held_parameters(file: HeldFile) -> Mapping[str, Any]:
    """Returns the parameters of a file that is held open; `array_of` takes them."""
    index = runtime.ParameterIndex()
    try:
        index.load_from_file_handle(runtime.FileHandle.wrap_memory(file.buffer), "irpa")
    except (RuntimeError, ValueError, IndexError) as error:
        raise ModelError("not a parameter file, or a truncated one", where=str(file.path)) from error
    return dict(index.items())


def array_of(entry: Any, shape: Sequence[int], dtype: np.dtype[Any], *, where: str) -> Array:
    """Returns a parameter in the memory of its file."""
    return _parameter(entry, list(shape), dtype.itemsize, where).view(dtype)


def read_parameter(archive: Path, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Returns a copy of a parameter of a file, in memory of its own."""
    return np.array(view_parameter(archive, name, shape, dtype))


def read_all(archive: Path) -> dict[str, Array]:
    """Returns the bytes of every parameter of a file."""
    return {
        name: _parameter(entry, [entry.length], 1, f"{archive}, parameter '{name}'")
        for name, entry in load_parameters(archive).items()
    }


def _as_it_is(entry: Any) -> Data | Splat:
    """Returns a parameter of a file for another file."""
    if entry.is_splat:
        return Splat(entry.length, entry.splat_pattern)
    return Data(entry.length, [np.frombuffer(entry.file_view, np.uint8)])


def _temporary(directory: Path, scope: str) -> Path:
    with tempfile.NamedTemporaryFile(
        prefix=f".{quote(scope, safe='')}.", suffix=".irpa", dir=directory, delete=False
    ) as file:
        return Path(file.name)


def _blocks(
    recipe: Mapping[str, Any], element_bytes: int, sources: Mapping[str, dict[str, Any]], archives: Archives
) -> Iterator[Array]:
    """Yields the result of a recipe in pieces, so that only one of several concatenated weights is in memory."""
    if recipe["step"] == "concat" and recipe["axis"] == 0:
        for part in recipe["of"]:
            yield from _blocks(part, element_bytes, sources, archives)
        return

    def parameter(source: Mapping[str, Any]) -> Array:
        where = f"{archives[source['scope']]}, parameter '{source['name']}'"
        return _parameter(sources[source["scope"]].get(source["name"]), source["shape"], element_bytes, where)

    made = evaluate_recipe(recipe, parameter)
    if made.flags.c_contiguous:
        yield made
    else:
        yield from made


def evaluate_recipe(recipe: Mapping[str, Any], parameter: Callable[[Mapping[str, Any]], Array]) -> Array:
    """Evaluates a recipe on parameters that `parameter` returns in their shapes; only pads, concatenations, swizzles,
    products and reshapes of transposed arrays copy."""
    step, shape = recipe["step"], recipe["shape"]
    if step == "parameter":
        return parameter(recipe)
    parts = [evaluate_recipe(part, parameter) for part in recipe["of"]]
    if step == "reshape":
        made = parts[0].reshape(shape)
    elif step == "transpose":
        made = parts[0].transpose(recipe["order"])
    elif step == "slice":
        made = parts[0][tuple(slice(lo, lo + size) for lo, size in zip(recipe["low"], shape, strict=True))]
    elif step == "pad":
        low, sizes = recipe["low"], parts[0].shape
        around = [(lo, n - lo - size) for lo, n, size in zip(low, shape, sizes, strict=True)]
        made = np.pad(parts[0], around)
    elif step == "swizzle":
        made = _swizzled(parts[0], recipe["atom"])
    elif step == "product":
        made = _multiplied(recipe["matrix"], parts[0])
    elif step == "concat":
        made = np.concatenate(parts, axis=recipe["axis"])
    else:
        raise CompileError(f"unknown step '{step}' in a recipe of a weight")
    if list(made.shape) != list(shape):
        raise CompileError(f"step '{step}' of a weight's recipe gives {made.shape} instead of {shape}")
    return made


def _swizzled(lines: Array, atom: int) -> Array:
    """Returns lines in their swizzled layout: the atoms of a line are permuted by its number, so that the same atom of
    eight lines lies in different banks."""
    count, length = lines.shape[-2:]
    atoms = length // atom
    turns = np.arange(count) * atoms // 8 % atoms
    places = np.arange(length) ^ (turns * atom)[:, None]
    return np.take_along_axis(lines, places.reshape((1,) * (lines.ndim - 2) + places.shape), axis=-1)


def _multiplied(matrix: Sequence[float], part: Array) -> Array:
    """Returns the product of a matrix, given row by row, with the bits of f32 along their first dim, as such bits."""
    rows = np.array(matrix).reshape(-1, part.shape[0])
    numbers = np.ascontiguousarray(part).view(np.float32)
    return np.tensordot(rows, numbers, axes=1).astype(np.float32).view(part.dtype)


def _parameter(entry: Any, shape: list[int], element_bytes: int, where: str) -> Array:
    if entry is None:
        raise ModelError("is not in the file", where=where, hint="give the file that belongs to the model")
    elements = math.prod(shape)
    if entry.length != elements * element_bytes:
        raise ModelError(f"has {entry.length} bytes instead of {elements * element_bytes}", where=where)
    if entry.is_splat:
        data = np.frombuffer(entry.splat_pattern * (entry.length // len(entry.splat_pattern)), np.uint8)
    else:
        data = np.frombuffer(entry.file_view, np.uint8)
    return data.view(_ELEMENTS.get(element_bytes, f"V{element_bytes}")).reshape(shape)


_ELEMENTS = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}
