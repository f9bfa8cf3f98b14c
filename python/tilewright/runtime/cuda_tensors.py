"""Tensors on the GPU that programs are called with: where they are, on which stream, and new ones for results.

PyTorch's and CuPy's tensors are used where they lie, in the order of the library's current stream, and results are
tensors of the same library. Tensors of others pass through DLPack, or `__cuda_array_interface__`; their results are
`DeviceArray`s, which have both.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tilewright.errors import InputError
from tilewright.records.signature import TensorSpec
from tilewright.runtime.cuda import Buffer, Cuda

_DLPACK_CUDA, _DLPACK_MANAGED = 2, 13
_DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""DLPack's codes of element types, by numpy's kinds."""
_DLPACK_BFLOAT = 4

_LEGACY_STREAM = 1
"""DLPack's number of the default stream of a context, whose handle is 0."""

ALIGNMENT = 16
"""Bytes that the addresses of inputs on a GPU are multiples of, for kernels that read vectors."""

Located = tuple[int, Any]
"""The address of a tensor, and the tensor that owns the memory there."""


class Library(Protocol):
    """What makes tensors for results."""

    def stream(self, own: int) -> int:
        """Returns the stream on which callers expect the program; `own` is one of the program."""

    def empty(self, cuda: Cuda, shape: tuple[int, ...], spec: TensorSpec) -> Located:
        """Returns a new tensor."""


def is_on_gpu(value: Any) -> bool:
    """Returns True for tensors in the memory of a GPU, of any library."""
    if type(value) is np.ndarray:
        return False
    if hasattr(value, "__dlpack_device__"):
        return value.__dlpack_device__()[0] in (_DLPACK_CUDA, _DLPACK_MANAGED)
    return hasattr(value, "__cuda_array_interface__")


def library_of(values: Sequence[Any]) -> Library:
    """Returns the library of the first tensor on the GPU."""
    first = next(value for value in values if is_on_gpu(value))
    if _is_of_torch(first):
        return _Torch(first)
    return _Cupy() if type(first).__module__.partition(".")[0] == "cupy" else _Other()


def locate(value: Any, spec: TensorSpec, stream: int) -> Located:
    """Returns where a tensor on the GPU lies. A tensor of PyTorch that is not contiguous or aligned is copied; those of
    other libraries are refused. Raises `InputError` if the tensor does not fit the input."""
    where = f"input '{spec.name}'"
    if not is_on_gpu(value):
        raise InputError(
            "it is in the host's memory, but other inputs are on the GPU", where=where, hint=_ALL
        )
    if _is_of_torch(value):
        return _locate_torch(value, spec, where)
    return _locate_other(value, spec, where, stream)


_ALL = "pass all inputs on the GPU, or all as arrays of numpy"


def _is_of_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


class _Torch:
    def __init__(self, tensor: Any) -> None:
        self._device = tensor.device

    def stream(self, own: int) -> int:
        import torch

        return int(torch.cuda.current_stream(self._device).cuda_stream)

    def empty(self, cuda: Cuda, shape: tuple[int, ...], spec: TensorSpec) -> Located:
        import torch

        tensor = torch.empty(shape, dtype=getattr(torch, spec.dtype), device=self._device)
        return tensor.data_ptr(), tensor


def _locate_torch(tensor: Any, spec: TensorSpec, where: str) -> Located:
    _check(
        spec,
        where,
        device=tensor.device.index,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
    )
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if tensor.data_ptr() % ALIGNMENT:
        tensor = tensor.clone()
    return tensor.data_ptr(), tensor


class _Cupy:
    def __init__(self) -> None:
        self._cupy: Any = sys.modules["cupy"]

    def stream(self, own: int) -> int:
        return int(self._cupy.cuda.get_current_stream().ptr)

    def empty(self, cuda: Cuda, shape: tuple[int, ...], spec: TensorSpec) -> Located:
        tensor = self._cupy.empty(shape, spec.numpy_dtype)
        return tensor.data.ptr, tensor


class _Other:
    def stream(self, own: int) -> int:
        return own

    def empty(self, cuda: Cuda, shape: tuple[int, ...], spec: TensorSpec) -> Located:
        cuda.use()
        size = math.prod(shape) * spec.numpy_dtype.itemsize
        array = DeviceArray(cuda, cuda.allocate(size), shape, spec.numpy_dtype)
        return array.pointer, array


class DeviceArray:
    """A result on the GPU. `torch.from_dlpack`, `cupy.asarray` and others take it; `numpy()` copies it."""

    def __init__(self, cuda: Cuda, memory: Buffer, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._cuda, self._memory = cuda, memory
        self.shape, self.dtype, self.pointer = shape, dtype, memory.pointer

    def numpy(self) -> np.ndarray[Any, Any]:
        """Returns the content as an array, when it is there."""
        self._wait()
        return self._memory.read(np.empty(self.shape, self.dtype))

    def _wait(self) -> None:
        self._cuda.use()
        self._cuda.synchronize()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_DLPACK_CUDA, 0)

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        """Returns the tensor for another library. It waits for the content, so any stream may read it."""
        from tilewright import _runtime

        self._wait()
        code, bits = _dlpack_type(self.dtype)
        return _runtime.lend_cuda(self, self.pointer, self.shape, code, bits, 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self._wait()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "version": 3,
        }

    def __repr__(self) -> str:
        return f"<tilewright array on the GPU, {self.dtype.name}{list(self.shape)}>"


def _dlpack_type(dtype: np.dtype[Any]) -> tuple[int, int]:
    code = _DLPACK_BFLOAT if dtype.name == "bfloat16" else _DLPACK_CODES.get(dtype.kind)
    if code is None:
        raise InputError(f"DLPack has no {dtype.name}", hint="take the result with .numpy()")
    return code, dtype.itemsize * 8


class _DlTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _locate_other(value: Any, spec: TensorSpec, where: str, stream: int) -> Located:
    if hasattr(value, "__dlpack__"):
        owner = value.__dlpack__(stream=stream or _LEGACY_STREAM)
        tensor = _read_capsule(owner)
        shape = tuple(tensor.shape[: tensor.ndim])
        strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _dense(shape)
        address, device = (tensor.data or 0) + tensor.byte_offset, tensor.device
        dtype = _name_of(tensor.code, tensor.bits, spec)
    else:
        owner, described = value, value.__cuda_array_interface__
        shape, address, device = tuple(described["shape"]), described["data"][0], 0
        known = np.dtype(described["typestr"])
        dtype = known.name
        given = described.get("strides")
        strides = tuple(s // known.itemsize for s in given) if given else _dense(shape)
    _check(spec, where, device=device, dtype=dtype, shape=shape)
    if any(s != d for s, d, size in zip(strides, _dense(shape), shape, strict=True) if size > 1):
        raise InputError(
            f"its strides {strides} are not contiguous", where=where, hint="pass a contiguous copy of it"
        )
    if address % ALIGNMENT:
        raise InputError(
            f"its address is no multiple of {ALIGNMENT} bytes", where=where, hint="pass a copy of it"
        )
    return address, owner


def _read_capsule(capsule: Any) -> _DlTensor:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return _DlTensor.from_address(pointer(capsule, b"dltensor"))


def _name_of(code: int, bits: int, spec: TensorSpec) -> str:
    """Returns the name of DLPack's element type, as signatures have it."""
    if (code, bits) == _dlpack_type(spec.numpy_dtype):
        return spec.dtype
    kinds = {code: kind for kind, code in _DLPACK_CODES.items()}
    return "bfloat16" if code == _DLPACK_BFLOAT else np.dtype(f"{kinds.get(code, 'V')}{bits // 8}").name


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _check(spec: TensorSpec, where: str, *, device: int, dtype: str, shape: tuple[int, ...]) -> None:
    if device != 0:
        raise InputError(
            f"it is on GPU {device}, and the program on GPU 0",
            where=where,
            hint="copy it there, or let the process see one GPU (CUDA_VISIBLE_DEVICES)",
        )
    if dtype != spec.dtype:
        raise InputError(f"dtype {dtype} was given but {spec.dtype} is needed", where=where)
    if shape != spec.shape:
        raise InputError(f"shape {shape} was given but {spec.shape} is needed", where=where)
