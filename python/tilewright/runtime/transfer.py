"""Copies arrays out of IREE's buffers, and maps element types."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from iree import runtime

from tilewright.records.signature import (
    Array,
    TensorSpec,
)

_HOST_VISIBLE = int(runtime.MemoryType.HOST_VISIBLE)


def pull(results: Any, index: int, spec: TensorSpec | None, device: Any) -> Array:
    value = results.get_variant(index)
    if not isinstance(value, runtime.VmRef):
        return np.asarray(value, dtype=spec.numpy_dtype if spec else None)
    view = value.deref(runtime.HalBufferView)
    dtype = spec.numpy_dtype if spec else np.dtype(runtime.HalElementType.map_to_dtype(view.element_type))
    return read_view(view, dtype, device)


def read_view(view: Any, dtype: np.dtype[Any], device: Any) -> Array:
    shape = view.shape
    if 0 in shape:
        return np.empty(shape, dtype)
    # This is a copy because the program may keep using the buffer, as it does for a constant that it returns.
    if not view.get_buffer().memory_type() & _HOST_VISIBLE:
        return _download(view, dtype, device)
    return np.array(view.map().asarray(shape, _bits(dtype))).view(dtype)


@functools.cache
def _bits(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"V{dtype.itemsize}")


@functools.cache
def integer_type(item_bytes: int) -> Any:
    return element_type(np.dtype(f"i{item_bytes}"))


@functools.cache
def element_type(dtype: np.dtype[Any]) -> Any:
    return runtime.array_interop.map_dtype_to_element_type(dtype)


def _download(view: Any, dtype: np.dtype[Any], device: Any) -> Array:
    """Copies a buffer from GPU memory as plain integers, since IREE does not have all of numpy's types."""
    bits = np.dtype(f"u{dtype.itemsize}")
    plain = runtime.HalBufferView(
        view.get_buffer(), view.shape, runtime.array_interop.map_dtype_to_element_type(bits)
    )
    array = runtime.DeviceArray(device, plain, implicit_host_transfer=True).to_host()
    return np.ascontiguousarray(array).view(dtype).reshape(view.shape)
