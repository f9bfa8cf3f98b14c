"""Dims whose sizes a model leaves open: what a caller says of them, and the sizes that a call gives them.

A dim is known by its name in the model ("seq"), or by its place ("x.1": axis 1 of input x). Axes with the same name
have the same size; an axis without a name has only its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.errors import CompileError, InputError, ModelError

if TYPE_CHECKING:
    from tilewright.records.signature import Signature

DimChoice: TypeAlias = "int | tuple[int, int] | Sequence[int]"
"""What `compile(dims=)` takes for a dim: its size, the least and the greatest size, or a list of sizes to build
ahead."""

Sizes: TypeAlias = Mapping[str, int]
"""Sizes of dims by name."""

_MOST_SIZE = 2**31 - 1


@dataclass(frozen=True)
class Dim:
    """What a caller says of a dim."""

    low: int = 0
    """Least size that a call may have."""
    high: int | None = None
    """Greatest size that a call may have; None: any."""
    ahead: tuple[int, ...] = ()
    """Sizes that are built when the model is compiled; calls with other sizes have no kernels of their own."""

    @property
    def fixed(self) -> int | None:
        """The only size, or None if there are several."""
        return self.low if self.low == self.high else None

    def to_json(self) -> list[Any]:
        return [self.low, self.high, list(self.ahead)]

    @staticmethod
    def from_json(data: Sequence[Any]) -> Dim:
        low, high, ahead = data
        return Dim(low, high, tuple(ahead))

    def __str__(self) -> str:
        if self.fixed is not None:
            return str(self.fixed)
        if self.ahead:
            return f"{', '.join(map(str, self.ahead))} built ahead"
        if self.high is None:
            return "any" if not self.low else f"{self.low} or more"
        return f"{self.low} to {self.high}"


def read_dims(dims: Mapping[str, Any] | None) -> dict[str, Dim]:
    """Reads what a caller gives as `dims`. Raises `CompileError` for anything that is no `DimChoice`."""
    if dims is not None and not isinstance(dims, Mapping):
        raise CompileError(
            "dims is not a mapping", hint='give sizes by name: dims={"batch": 1, "seq": (1, 512)}'
        )
    return {str(name): _read(str(name), choice) for name, choice in (dims or {}).items()}


def _read(name: str, choice: Any) -> Dim:
    if isinstance(choice, tuple):
        if len(choice) != 2:
            raise _wrong(name, choice)
        low, high = (_size(name, choice, size, least=0) for size in choice)
        if low > high:
            raise _wrong(name, choice)
        return Dim(low, high)
    if isinstance(choice, list | range):
        sizes = tuple(sorted({_size(name, choice, size, least=1) for size in choice}))
        if not sizes:
            raise _wrong(name, choice)
        return Dim(ahead=sizes)
    size = _size(name, choice, choice, least=1)
    return Dim(size, size)


def _size(name: str, choice: Any, size: Any, *, least: int) -> int:
    try:
        number = None if isinstance(size, bool) else index(size)
    except TypeError:
        number = None
    if number is None or not least <= number <= _MOST_SIZE:
        raise _wrong(name, choice)
    return number


def _wrong(name: str, choice: Any) -> CompileError:
    return CompileError(
        f"dims says {choice!r} of '{name}'",
        hint="give a size from 1, a pair (least, greatest), or a list of sizes to build ahead",
    )


@dataclass(frozen=True)
class Axis:
    """An axis of an input whose size is open."""

    input: int
    axis: int
    dim: str
    """Name of its dim."""


def open_axes(inputs: Sequence[tuple[str, Sequence[int | str | None]]]) -> tuple[Axis, ...]:
    """Returns the axes of inputs, given by name and shape, whose sizes are open."""
    return tuple(
        Axis(position, axis, size if isinstance(size, str) else f"{name}.{axis}")
        for position, (name, shape) in enumerate(inputs)
        for axis, size in enumerate(shape)
        if not isinstance(size, int)
    )


def open_dims_of(
    signature: Signature | None, given: Mapping[str, Dim], of_model: Mapping[str, Dim]
) -> dict[str, Dim]:
    """Returns what is known of the dims that a signature leaves open: what the caller gives, within what the model
    allows. Raises `ModelError` if a dim that is given does not exist."""
    if signature is None:
        return {}
    inputs = signature_inputs(signature)
    names = dim_names(open_axes(inputs))
    # Fixed dims are no longer among them; the front end has checked their names.
    settled = settle_names(
        {name: dim for name, dim in given.items() if dim.fixed is None}, inputs, where="dims"
    )
    return {name: _within(settled.get(name, Dim()), of_model.get(name, Dim())) for name in names}


def _within(dim: Dim, other: Dim) -> Dim:
    """Returns a dim with the bounds of both."""
    highs = [high for high in (dim.high, other.high) if high is not None]
    return Dim(max(dim.low, other.low), min(highs, default=None), dim.ahead)


def dim_names(axes: Sequence[Axis]) -> list[str]:
    """Returns the names of the dims of axes, each once."""
    return list(dict.fromkeys(axis.dim for axis in axes))


def settle_names(
    given: Mapping[str, Any], inputs: Sequence[tuple[str, Sequence[int | str | None]]], *, where: str
) -> dict[str, Any]:
    """Returns what is given for dims by the names that the dims have, because a dim may be given by a place of it.

    Raises `ModelError` if there is no such dim, or if two things are given for one.
    """
    axes = open_axes(inputs)
    names = {f"input{axis.input}.{axis.axis}": axis.dim for axis in axes}
    names |= {f"{inputs[axis.input][0]}.{axis.axis}": axis.dim for axis in axes}
    names |= {axis.dim: axis.dim for axis in axes}
    settled: dict[str, Any] = {}
    for name, value in given.items():
        dim = names.get(name)
        if dim is None:
            raise ModelError(
                f"no dim of its inputs is called '{name}'",
                where=where,
                hint=f"it has: {', '.join(dim_names(axes)) or 'only dims of fixed size'}",
            )
        if settled.setdefault(dim, value) != value:
            raise ModelError(f"dims says two things of '{dim}'", where=where)
    return settled


def signature_inputs(signature: Signature) -> list[tuple[str, Sequence[int | str | None]]]:
    return [(spec.name, spec.shape) for spec in signature.inputs]


def sizes_of(axes: Sequence[Axis], signature: Signature, values: Sequence[Any]) -> dict[str, int] | None:
    """Returns the sizes that arrays or tensors give to dims; None if they do not fit the signature, which a check of
    them will say."""
    if len(values) > len(signature.inputs):
        return None
    sizes: dict[str, int] = {}
    for axis in axes:
        if axis.input >= len(values):
            return None
        shape = _shape(values[axis.input])
        if shape is None or len(shape) != len(signature.inputs[axis.input].shape):
            return None
        size = int(shape[axis.axis])
        if sizes.setdefault(axis.dim, size) != size:
            return None
    return sizes


def _shape(value: Any) -> Sequence[int] | None:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return shape  # type: ignore[no-any-return]
    import numpy as np  # it is slow, and the command line reads this module for its help

    try:
        return tuple(np.shape(value))
    except ValueError:  # lists of different lengths
        return None


def check_sizes(sizes: Sizes, dims: Mapping[str, Dim], axes: Sequence[Axis], signature: Signature) -> None:
    """Raises `InputError` if a dim has a size that a program was not compiled for."""
    for name, size in sizes.items():
        dim = dims.get(name)
        if dim is None or (dim.low <= size and (dim.high is None or size <= dim.high)):
            continue
        axis = next(axis for axis in axes if axis.dim == name)
        raise InputError(
            f"dim {axis.axis} ('{name}') is {size}, but the program was compiled for {dim}",
            where=f"input '{signature.inputs[axis.input].name}'",
        )


def ahead_shapes(dims: Mapping[str, Dim], names: Sequence[str]) -> list[dict[str, int]]:
    """Returns the shapes to build ahead: all combinations of listed sizes, if every dim has such or only one size.

    The largest come first.
    """
    if not any(dim.ahead for dim in dims.values()) or not all(_choices(dims, name) for name in names):
        return []
    return all_shapes(dims, names)


def all_shapes(dims: Mapping[str, Dim], names: Sequence[str]) -> list[dict[str, int]]:
    """Returns all combinations of sizes, the largest first. Raises `CompileError` if a dim has none."""
    choices = [_choices(dims, name) for name in names]
    for name, sizes in zip(names, choices, strict=True):
        if not sizes:
            raise CompileError(
                f"no size is given for '{name}'", hint="give a size or a list of sizes for every dim"
            )
    return [dict(zip(names, sizes, strict=True)) for sizes in itertools.product(*choices)]


def _choices(dims: Mapping[str, Dim], name: str) -> tuple[int, ...]:
    """Returns the sizes that are listed for a dim, largest first; none for a range."""
    dim = dims.get(name, Dim())
    return dim.ahead[::-1] or (() if dim.fixed is None else (dim.fixed,))


def spell_sizes(sizes: Sizes) -> str:
    """Returns sizes as text: "batch=1, seq=16"."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
