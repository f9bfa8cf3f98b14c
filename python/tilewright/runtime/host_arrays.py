"""Arrays of numpy that programs without IREE are called with: which they take as they are, and what they return."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.records.signature import DEFAULTS_SCOPE, Array, Signature
from tilewright.runtime.defaults import DefaultInputs
from tilewright.runtime.held import HeldFile
from tilewright.runtime.launch_loops import ALIGNMENT
from tilewright.runtime.launches import shape_of
from tilewright.runtime.stored import held_parameters

_LENDABLE = 0x101
"""Flags of numpy's C interface: contiguous, and aligned as the type is."""


class HostArrays:
    """The inputs and outputs of a program, as arrays."""

    def __init__(self, signature: Signature, weights: Mapping[str, HeldFile], *, entry: str) -> None:
        """Takes the parameter files of the program, of which one may have the defaults of inputs."""
        self._inputs = [(spec.numpy_dtype, shape_of(spec)) for spec in signature.inputs]
        self._output_shapes = [shape_of(spec) for spec in signature.outputs]
        self._output_dtypes = [spec.numpy_dtype for spec in signature.outputs]
        self._exports = [_plain(dtype) for dtype, _ in self._inputs]
        self._are_plain = not any(self._exports)
        values = held_parameters(weights[DEFAULTS_SCOPE]) if DEFAULTS_SCOPE in weights else {}
        self.defaults = DefaultInputs(values, where=entry)
        self._last = [aligned(self.defaults.array(spec)) for spec in signature.inputs if spec.has_default]

    def takes(self, arrays: Sequence[Any]) -> bool:
        """Returns True if these are the inputs, as contiguous arrays of their types and shapes."""
        if not len(self._inputs) - len(self._last) <= len(arrays) <= len(self._inputs):
            return False
        # This is a loop and not a comprehension, because it is a part of every call.
        for array, (dtype, shape) in zip(arrays, self._inputs, strict=False):
            if type(array) is not np.ndarray or array.shape != shape:
                return False
            if array.dtype is not dtype and array.dtype != dtype:
                return False
            if array.flags.num & _LENDABLE != _LENDABLE:
                return False
        return True

    def forms(self) -> list[tuple[str, tuple[int, ...]]] | None:
        """Returns the type of each input, as the module `struct` spells it, and its shape; None if there is a type that
        cannot lend its memory as what it is."""
        if not self._are_plain:
            return None
        return [(np.empty(1, dtype).data.format, shape) for dtype, shape in self._inputs]

    def checked(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns arrays that the signature has accepted where kernels can read them."""
        return [np.require(array, requirements=["C", "A"]) for array in arrays]

    def lent(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Returns arrays, and the defaults of those that are missing, as types that can lend their memory."""
        if missing := len(self._inputs) - len(arrays):
            arrays = [*arrays, *self._last[-missing:]]
        if self._are_plain:
            return arrays
        return [
            array if plain is None else array.view(plain)
            for array, plain in zip(arrays, self._exports, strict=True)
        ]

    def results(self, memories: Sequence[Any]) -> list[Array]:
        """Returns the outputs, whose memory the runtime has returned."""
        make: Any = np.ndarray
        # This is a map and not a comprehension, because it is a part of every call.
        return list(map(make, self._output_shapes, self._output_dtypes, memories))


def aligned(array: Array) -> Array:
    """Returns a contiguous array at an aligned address: the array itself if it is one."""
    array = np.ascontiguousarray(array)
    if array.ctypes.data % ALIGNMENT == 0:
        return array
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    moved = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def _plain(dtype: np.dtype[Any]) -> str | None:
    """Returns the type as which an array can lend its memory, if it cannot as what it is (bfloat16)."""
    return None if re.fullmatch(r"[?bBhHiIlLqQefdFDgG]", dtype.char) else f"u{dtype.itemsize}"
