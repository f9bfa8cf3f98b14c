"""The CUDA driver through its C interface: the GPU that is here, and kernels run without IREE.

Only `libcuda`, which comes with the driver, is needed: no toolkit and no other package. Every argument is passed as the
C type that the driver expects, so that a stand-in for the library sees what the library would.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import ProgramError
from tilewright.records.signature import Array

# Of cuda.h.
_SUCCESS, _OUT_OF_MEMORY = 0, 2
_MULTIPROCESSORS, _L2_BYTES, _MAJOR, _MINOR = 16, 38, 75, 76
_THREADS_OF_MULTIPROCESSOR, _SHARED_BYTES_OF_MULTIPROCESSOR = 39, 81
_DYNAMIC_SHARED_BYTES, _LOCAL_BYTES, _REGISTERS = 8, 3, 4
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6
# What every kernel gets without asking.
_PLAIN_SHARED_BYTES = 48 << 10
_LOG_BYTES = 4096


class CudaError(ProgramError):
    """A call of the driver that failed."""

    def __init__(self, message: str, *, code: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


@dataclass(frozen=True)
class CudaDevice:
    """What the driver says of a GPU."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    multiprocessor_threads: int
    multiprocessor_shared_bytes: int
    l2_bytes: int
    memory_bytes: int
    driver: str
    """The newest CUDA that it supports: "13.0"."""


class CudaDriver:
    """The driver and its first GPU, of which nothing is used yet."""

    def __init__(self, library: Any = None) -> None:
        self._library = library or open_driver()
        self._call("cuInit", c_uint(0))
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        if count.value == 0:
            raise ProgramError("the driver has no GPU", hint="run this on a machine with an NVIDIA GPU")
        self._device = c_int()
        self._call("cuDeviceGet", byref(self._device), c_int(0))

    def describe(self) -> CudaDevice:
        """What the GPU is."""
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, c_int(len(name)), self._device)
        memory, version = c_size_t(), c_int()
        self._call("cuDeviceTotalMem_v2", byref(memory), self._device)
        self._call("cuDriverGetVersion", byref(version))
        return CudaDevice(
            name=name.value.decode(),
            capability=(self._attribute(_MAJOR), self._attribute(_MINOR)),
            multiprocessors=self._attribute(_MULTIPROCESSORS),
            multiprocessor_threads=self._attribute(_THREADS_OF_MULTIPROCESSOR),
            multiprocessor_shared_bytes=self._attribute(_SHARED_BYTES_OF_MULTIPROCESSOR),
            l2_bytes=self._attribute(_L2_BYTES),
            memory_bytes=memory.value,
            driver=f"{version.value // 1000}.{version.value % 1000 // 10}",
        )

    def _attribute(self, which: int) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), c_int(which), self._device)
        return value.value

    def _call(self, function: str, *arguments: Any) -> None:
        code = int(getattr(self._library, function)(*arguments))
        if code != _SUCCESS:
            hint = "free memory of the GPU" if code == _OUT_OF_MEMORY else None
            raise CudaError(f"{function} fails: {self._name_of(code)}", code=code, hint=hint)

    def _name_of(self, code: int) -> str:
        text = c_char_p()
        self._library.cuGetErrorName(c_int(code), byref(text))
        return text.value.decode() if text.value else f"error {code}"


class Cuda(CudaDriver):
    """The GPU in use, in the context that all libraries of the process share."""

    def __init__(self, library: Any = None) -> None:
        super().__init__(library)
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self._call("cuCtxSetCurrent", context)

    def allocate(self, size: int) -> Buffer:
        """Memory of the GPU, with whatever is in it."""
        pointer = c_uint64()
        self._call("cuMemAlloc_v2", byref(pointer), c_size_t(max(size, 1)))
        return Buffer(self, pointer.value, size)

    def upload(self, array: Array) -> Buffer:
        """A copy of an array."""
        data = np.ascontiguousarray(array)
        buffer = self.allocate(data.nbytes)
        if data.nbytes:
            self._call(
                "cuMemcpyHtoD_v2", c_uint64(buffer.pointer), c_void_p(data.ctypes.data), c_size_t(data.nbytes)
            )
        return buffer

    def load(self, ptx: bytes) -> CudaModule:
        """Assembles PTX for this GPU."""
        module, log = c_void_p(), ctypes.create_string_buffer(_LOG_BYTES)
        options = (c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.cast(log, c_void_p), c_void_p(_LOG_BYTES))
        try:
            self._call("cuModuleLoadDataEx", byref(module), c_char_p(ptx + b"\0"), c_uint(2), options, values)
        except CudaError as error:
            said = " ".join(log.value.decode(errors="replace").split())[:300]
            raise CudaError(f"{error.message}: {said}" if said else error.message, code=error.code) from None
        return CudaModule(self, module)

    def synchronize(self) -> None:
        """Waits for all that was launched; what failed shows here."""
        self._call("cuCtxSynchronize")

    def event(self) -> CudaEvent:
        """A mark in the order of launches, with a time."""
        return CudaEvent(self)


class Buffer:
    """Memory of the GPU; freed with the object."""

    def __init__(self, cuda: Cuda, pointer: int, size: int) -> None:
        self._cuda, self.pointer, self.size = cuda, pointer, size

    def fill(self, byte: int) -> None:
        """Sets every byte, in the order of launches."""
        self._cuda._call("cuMemsetD8_v2", c_uint64(self.pointer), c_ubyte(byte), c_size_t(self.size))

    def copy_from(self, other: Buffer) -> None:
        """Takes the content of a buffer of the same size, in the order of launches."""
        self._cuda._call(
            "cuMemcpyDtoDAsync_v2",
            c_uint64(self.pointer),
            c_uint64(other.pointer),
            c_size_t(self.size),
            c_void_p(),
        )

    def read(self, like: Array) -> Array:
        """The content as an array of the given one's type and shape."""
        array = np.empty_like(like)
        if array.nbytes:
            self._cuda._call(
                "cuMemcpyDtoH_v2",
                c_void_p(array.ctypes.data),
                c_uint64(self.pointer),
                c_size_t(array.nbytes),
            )
        return array

    def __del__(self) -> None:
        # After a trap there is nothing left to free.
        self._cuda._library.cuMemFree_v2(c_uint64(self.pointer))


class CudaModule:
    """Loaded PTX."""

    def __init__(self, cuda: Cuda, handle: c_void_p) -> None:
        self._cuda, self._handle = cuda, handle

    def kernel(self, name: str, *, dynamic_shared_bytes: int = 0) -> CudaKernel:
        """A kernel by its name."""
        function = c_void_p()
        self._cuda._call("cuModuleGetFunction", byref(function), self._handle, c_char_p(name.encode()))
        if dynamic_shared_bytes > _PLAIN_SHARED_BYTES:
            self._cuda._call(
                "cuFuncSetAttribute", function, c_int(_DYNAMIC_SHARED_BYTES), c_int(dynamic_shared_bytes)
            )
        return CudaKernel(self._cuda, function, dynamic_shared_bytes)


class CudaKernel:
    """A kernel, ready to be launched."""

    def __init__(self, cuda: Cuda, function: c_void_p, dynamic_shared_bytes: int) -> None:
        self._cuda, self._function, self._shared = cuda, function, dynamic_shared_bytes

    @property
    def registers(self) -> int:
        """That the driver's assembler gave a thread."""
        return self._attribute(_REGISTERS)

    @property
    def local_bytes(self) -> int:
        """Of a thread's own memory: spills."""
        return self._attribute(_LOCAL_BYTES)

    def bind(self, workgroups: int, threads: int, buffers: Sequence[Buffer]) -> Callable[[], None]:
        """A launch on these buffers."""
        pointers = [c_uint64(buffer.pointer) for buffer in buffers]
        parameters = (c_void_p * len(pointers))(*(ctypes.addressof(pointer) for pointer in pointers))
        grid = (c_uint(workgroups), c_uint(1), c_uint(1))
        block = (c_uint(threads), c_uint(1), c_uint(1))
        shared, stream = c_uint(self._shared), c_void_p()

        # What `parameters` points to, and whose memory that is, lives as long as the launch.
        def launch(_kept: object = (pointers, buffers)) -> None:
            self._cuda._call(
                "cuLaunchKernel", self._function, *grid, *block, shared, stream, parameters, c_void_p()
            )

        return launch

    def _attribute(self, which: int) -> int:
        value = c_int()
        self._cuda._call("cuFuncGetAttribute", byref(value), c_int(which), self._function)
        return value.value


class CudaEvent:
    """A mark in the order of launches."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda, self._handle = cuda, c_void_p()
        cuda._call("cuEventCreate", byref(self._handle), c_uint(0))

    def record(self) -> None:
        """Marks what has been launched until now."""
        self._cuda._call("cuEventRecord", self._handle, c_void_p())

    def seconds_since(self, earlier: CudaEvent) -> float:
        """Of the GPU, between two marks that it has passed."""
        milliseconds = c_float()
        self._cuda._call("cuEventElapsedTime", byref(milliseconds), earlier._handle, self._handle)
        return milliseconds.value * 1e-3

    def __del__(self) -> None:
        self._cuda._library.cuEventDestroy_v2(self._handle)


def open_driver() -> Any:
    """The driver's library; an error that says so where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise ProgramError(
            "no NVIDIA driver is here (libcuda.so.1 cannot be opened)",
            hint="run this on a machine with an NVIDIA GPU and its driver",
        ) from None
