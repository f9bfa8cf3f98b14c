"""The library for C, called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.runtime.exported import c_flags

Array = np.ndarray[Any, Any]


class Tensor(ctypes.Structure):
    """`tw_tensor`"""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("rank", ctypes.c_size_t),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_size_t),
        ("alignment", ctypes.c_size_t),
    )


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    path = next(flag[2:] for flag in c_flags() if flag.startswith("-L"))
    loaded = ctypes.CDLL(f"{path}/libtilewright_runtime.so")
    loaded.tw_open.restype = ctypes.c_void_p
    loaded.tw_error.restype = ctypes.c_char_p
    loaded.tw_call.restype = ctypes.c_bool
    for function in (loaded.tw_input, loaded.tw_output):
        function.restype = ctypes.POINTER(Tensor)
    for function in (loaded.tw_input_count, loaded.tw_output_count):
        function.restype = ctypes.c_size_t
    return loaded


class Opened:
    """A program that the library has opened."""

    def __init__(self, library: ctypes.CDLL, path: Path, threads: int = 0) -> None:
        """Raises `ValueError` with the library's error if it cannot be opened."""
        self.library = library
        self.handle = ctypes.c_void_p(library.tw_open(str(path).encode(), threads))
        if not self.handle:
            raise ValueError(self.error())
        self.inputs = [self.library.tw_input(self.handle, i)[0] for i in range(self.count("input"))]
        self.outputs = [self.library.tw_output(self.handle, i)[0] for i in range(self.count("output"))]

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.tw_close(self.handle)

    def count(self, kind: str) -> int:
        return int(getattr(self.library, f"tw_{kind}_count")(self.handle))

    def error(self) -> str:
        return str(self.library.tw_error().decode())

    def call(self, arrays: Sequence[Array], *, misplaced: int = 0) -> list[bytes]:
        """Returns the bytes of the results; raises `ValueError` with the library's error. Outputs begin `misplaced`
        bytes behind a multiple of 64."""
        given = [np.require(array, requirements=["C", "A"]) for array in arrays]
        memory = [np.zeros(tensor.bytes + 128, np.uint8) for tensor in self.outputs]
        starts = [-one.ctypes.data % 64 + misplaced for one in memory]
        inputs = (ctypes.c_void_p * len(given))(*(array.ctypes.data for array in given))
        outputs = (ctypes.c_void_p * len(memory))(
            *(one.ctypes.data + start for one, start in zip(memory, starts, strict=True))
        )
        if not self.library.tw_call(self.handle, inputs, outputs):
            raise ValueError(self.error())
        return [
            one[start : start + tensor.bytes].tobytes()
            for one, start, tensor in zip(memory, starts, self.outputs, strict=True)
        ]
