"""Values of inputs that callers may leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.errors import ProgramError
from tilewright.records.signature import Array, TensorSpec


class DefaultInputs:
    """The default values of a program's inputs, each placed once for all calls: programs do not write to inputs."""

    def __init__(self, values: Mapping[str, Any], *, where: str) -> None:
        """Takes IREE's entries of the archive with the values, by the inputs' names."""
        self._values, self._where = values, where
        self._placed: dict[str, Any] = {}

    def placed(self, spec: TensorSpec, place: Callable[[Array], Any]) -> Any:
        """Returns an input's default where programs read it; `place` puts a copy of an array there."""
        if spec.name not in self._placed:
            self._placed[spec.name] = place(self._bytes(spec))
        return self._placed[spec.name]

    def array(self, spec: TensorSpec) -> Array:
        """Returns an input's default, in the type of the signature."""
        return self._bytes(spec).view(spec.numpy_dtype)

    def release(self) -> None:
        """Releases what was placed."""
        self._placed.clear()

    def _bytes(self, spec: TensorSpec) -> Array:
        shape = [size for size in spec.shape if isinstance(size, int)]
        dtype = np.dtype(np.uint8) if spec.is_coded else spec.numpy_dtype
        entry = self._values.get(spec.name)
        if entry is None or entry.length != int(np.prod(shape)) * dtype.itemsize:
            raise ProgramError(f"the default of input '{spec.name}' is missing", where=self._where)
        if entry.is_splat:
            data = np.frombuffer(entry.splat_pattern * (entry.length // len(entry.splat_pattern)), np.uint8)
        else:
            data = np.frombuffer(entry.file_view, np.uint8)
        return data.view(dtype).reshape(shape)
