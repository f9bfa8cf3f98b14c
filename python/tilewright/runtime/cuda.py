"""The CUDA driver through its C interface: describes this machine's GPU and runs kernels on it without IREE.

Only `libcuda`, which comes with the driver, is needed; no toolkit and no other package. Every argument is passed as the
C type that the driver expects, so that a fake library in tests receives what the real one would.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import ProgramError
from tilewright.records.signature import Array

# Constants of cuda.h.
_SUCCESS, _OUT_OF_MEMORY = 0, 2
_MULTIPROCESSORS, _L2_BYTES, _MAJOR, _MINOR = 16, 38, 75, 76
_THREADS_OF_MULTIPROCESSOR, _SHARED_BYTES_OF_MULTIPROCESSOR = 39, 81
_DYNAMIC_SHARED_BYTES, _LOCAL_BYTES, _REGISTERS = 8, 3, 4
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6
_NON_BLOCKING_STREAM, _CAPTURE_OF_THREAD, _EVENT_WITHOUT_TIME = 1, 1, 2
# Bytes of shared memory that every kernel may use without opting in.
_PLAIN_SHARED_BYTES = 48 << 10
_LOG_BYTES = 4096


class CudaError(ProgramError):
    """A driver call failed."""

    def __init__(self, message: str, *, code: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


@dataclass(frozen=True)
class CudaDevice:
    """Properties of a GPU as the driver reports them."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    multiprocessor_threads: int
    multiprocessor_shared_bytes: int
    l2_bytes: int
    memory_bytes: int
    driver: str
    """The newest CUDA version that the driver supports, such as "13.0"."""


class CudaDriver:
    """The driver and its first GPU, before a context is made."""

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
        """Returns the properties of the GPU."""
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

    def address_of(self, function: str) -> int:
        """Returns the address of a function of the driver's library."""
        return ctypes.cast(getattr(self._library, function), c_void_p).value or 0

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
    """The GPU in use, in its primary context, which all libraries of the process share."""

    def __init__(self, library: Any = None) -> None:
        super().__init__(library)
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self.context = context.value or 0
        self.use()

    def use(self) -> None:
        """Makes the context that of this thread, so that other methods work here."""
        self._call("cuCtxSetCurrent", c_void_p(self.context))

    @property
    def multiprocessors(self) -> int:
        return self._attribute(_MULTIPROCESSORS)

    def _release_with(self, owner: object, function: str, handle: Any) -> None:
        """Gives something back when the object that owns it ends. The end of the process does that by itself."""
        weakref.finalize(owner, self._release, function, handle).atexit = False

    def _release(self, function: str, handle: Any) -> None:
        """Gives something back, in whatever thread its last user ends. It does not raise: after a fault the context is
        gone, and with it everything in it."""
        self._library.cuCtxSetCurrent(c_void_p(self.context))
        getattr(self._library, function)(handle)

    def allocate(self, size: int) -> Buffer:
        """Allocates GPU memory with undefined content."""
        pointer = c_uint64()
        self._call("cuMemAlloc_v2", byref(pointer), c_size_t(max(size, 1)))
        return Buffer(self, pointer.value, size)

    def upload(self, array: Array) -> Buffer:
        """Returns a copy of an array in GPU memory."""
        buffer = self.allocate(array.nbytes)
        self.upload_to(buffer.pointer, array)
        return buffer

    def upload_to(self, address: int, array: Array) -> None:
        """Copies an array to an address in GPU memory."""
        data = np.ascontiguousarray(array)
        if data.nbytes:
            self._call(
                "cuMemcpyHtoD_v2", c_uint64(address), c_void_p(data.ctypes.data), c_size_t(data.nbytes)
            )

    def load(self, ptx: bytes) -> CudaModule:
        """Loads PTX, which the driver assembles for this GPU, or machine code."""
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
        """Waits for all launches; raises `CudaError` if one of them failed."""
        self._call("cuCtxSynchronize")

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Copies bytes between addresses in GPU memory, in the order of a stream."""
        if size:
            self._call(
                "cuMemcpyDtoDAsync_v2", c_uint64(to), c_uint64(source), c_size_t(size), c_void_p(stream)
            )

    def read_at(self, address: int, array: Array) -> Array:
        """Fills a contiguous array with what is at an address in GPU memory, and returns it."""
        if array.nbytes:
            self._call(
                "cuMemcpyDtoH_v2", c_void_p(array.ctypes.data), c_uint64(address), c_size_t(array.nbytes)
            )
        return array

    def stream(self) -> CudaStream:
        """Returns a new stream, which does not wait for the default stream."""
        return CudaStream(self)

    def event(self, *, is_timed: bool = True) -> CudaEvent:
        """Returns an event, which records a time in the order of launches, or only the order."""
        return CudaEvent(self, is_timed=is_timed)


class Buffer:
    """GPU memory, freed with the object."""

    def __init__(self, cuda: Cuda, pointer: int, size: int) -> None:
        self._cuda, self.pointer, self.size = cuda, pointer, size
        cuda._release_with(self, "cuMemFree_v2", c_uint64(pointer))

    def fill(self, byte: int) -> None:
        """Sets every byte to `byte`, in the order of launches."""
        self._cuda._call("cuMemsetD8_v2", c_uint64(self.pointer), c_ubyte(byte), c_size_t(self.size))

    def copy_from(self, other: Buffer) -> None:
        """Copies the content of a buffer of the same size, in the order of launches."""
        self._cuda.copy(self.pointer, other.pointer, self.size, 0)

    def read(self, like: Array) -> Array:
        """Returns the content as an array with the type and shape of `like`."""
        return self._cuda.read_at(self.pointer, np.empty_like(like))


class CudaStream:
    """An order of launches of its own."""

    def __init__(self, cuda: Cuda) -> None:
        handle = c_void_p()
        cuda._call("cuStreamCreate", byref(handle), c_uint(_NON_BLOCKING_STREAM))
        self._cuda, self.handle = cuda, handle.value or 0
        cuda._release_with(self, "cuStreamDestroy_v2", handle)

    def synchronize(self) -> None:
        """Waits for all launches on the stream; raises `CudaError` if one of them failed."""
        self._cuda._call("cuStreamSynchronize", c_void_p(self.handle))

    def capture(self, work: Callable[[], None]) -> CudaGraph:
        """Returns a graph of all that `work` launches on the stream, which does not run yet."""
        graph, made = c_void_p(), c_void_p()
        self._cuda._call("cuStreamBeginCapture_v2", c_void_p(self.handle), c_int(_CAPTURE_OF_THREAD))
        try:
            work()
        finally:
            self._cuda._call("cuStreamEndCapture", c_void_p(self.handle), byref(graph))
        try:
            self._cuda._call("cuGraphInstantiateWithFlags", byref(made), graph, c_uint64(0))
        finally:
            self._cuda._call("cuGraphDestroy", graph)
        return CudaGraph(self._cuda, made.value or 0)


class CudaGraph:
    """Launches that the driver makes at once."""

    def __init__(self, cuda: Cuda, handle: int) -> None:
        self.handle = handle
        cuda._release_with(self, "cuGraphExecDestroy", c_void_p(handle))


class CudaModule:
    """Loaded code."""

    def __init__(self, cuda: Cuda, handle: c_void_p) -> None:
        self._cuda, self._handle = cuda, handle
        cuda._release_with(self, "cuModuleUnload", handle)

    def kernel(self, name: str, *, dynamic_shared_bytes: int = 0) -> CudaKernel:
        """Returns the kernel with this name."""
        function = c_void_p()
        self._cuda._call("cuModuleGetFunction", byref(function), self._handle, c_char_p(name.encode()))
        if dynamic_shared_bytes > _PLAIN_SHARED_BYTES:
            self._cuda._call(
                "cuFuncSetAttribute", function, c_int(_DYNAMIC_SHARED_BYTES), c_int(dynamic_shared_bytes)
            )
        return CudaKernel(self, function, dynamic_shared_bytes)


class CudaKernel:
    """A kernel that is ready to be launched."""

    def __init__(self, module: CudaModule, function: c_void_p, dynamic_shared_bytes: int) -> None:
        self._module = module  # which it keeps loaded
        self._cuda, self._function, self._shared = module._cuda, function, dynamic_shared_bytes

    @property
    def handle(self) -> int:
        return self._function.value or 0

    def resident_blocks(self, threads: int) -> int:
        """Returns how many blocks of so many threads run on a multiprocessor at once."""
        count = c_int()
        self._cuda._call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            byref(count),
            self._function,
            c_int(threads),
            c_size_t(self._shared),
        )
        return count.value

    @property
    def registers(self) -> int:
        """Registers per thread that the driver's assembler used."""
        return self._attribute(_REGISTERS)

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory per thread, which are spills."""
        return self._attribute(_LOCAL_BYTES)

    def bind(self, workgroups: int, threads: int, buffers: Sequence[Buffer]) -> Callable[[], None]:
        """Returns a callable that launches the kernel on these buffers."""
        pointers = [c_uint64(buffer.pointer) for buffer in buffers]
        parameters = (c_void_p * len(pointers))(*(ctypes.addressof(pointer) for pointer in pointers))
        grid = (c_uint(workgroups), c_uint(1), c_uint(1))
        block = (c_uint(threads), c_uint(1), c_uint(1))
        shared, stream = c_uint(self._shared), c_void_p()

        # `parameters` points to these values, so they and the buffers must live as long as the launch.
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
    """An event, which marks a point in the order of launches."""

    def __init__(self, cuda: Cuda, *, is_timed: bool) -> None:
        self._cuda, self._handle = cuda, c_void_p()
        cuda._call("cuEventCreate", byref(self._handle), c_uint(0 if is_timed else _EVENT_WITHOUT_TIME))
        cuda._release_with(self, "cuEventDestroy_v2", self._handle)

    @property
    def handle(self) -> int:
        return self._handle.value or 0

    def record(self, stream: int = 0) -> None:
        """Marks the point after everything launched so far on a stream."""
        self._cuda._call("cuEventRecord", self._handle, c_void_p(stream))

    def synchronize(self) -> None:
        """Waits until the GPU has passed the point."""
        self._cuda._call("cuEventSynchronize", self._handle)

    def seconds_since(self, earlier: CudaEvent) -> float:
        """Returns the seconds of GPU time between two events that the GPU has passed."""
        milliseconds = c_float()
        self._cuda._call("cuEventElapsedTime", byref(milliseconds), earlier._handle, self._handle)
        return milliseconds.value * 1e-3


def open_driver() -> Any:
    """Loads the driver's library; raises `CudaError` if there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise ProgramError(
            "no NVIDIA driver is installed (libcuda.so.1 cannot be opened)",
            hint="run this on a machine with an NVIDIA GPU and its driver",
        ) from None
