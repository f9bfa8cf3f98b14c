"""A stand-in for the CUDA driver's library, as C functions: memory is the host's, and kernels run on the simulated
device when they are launched.

It refuses what the driver refuses of its callers: threads without a context, what allocates or waits while a stream is
captured, and cooperative launches of more blocks than are resident at once. It counts the calls of every function.
"""

from __future__ import annotations

import ctypes
import functools
import re
import threading
from collections import Counter
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import tilewright
from tilewright.records.signature import element_dtype
from tilewright.simulator.programs import describe_launches

LAUNCH_SECONDS = 10e-6
NOT_FOUND, INVALID_CONTEXT, TOO_LARGE, DURING_CAPTURE, UNKNOWN = 500, 201, 720, 900, 999
_NAMES = {
    NOT_FOUND: b"CUDA_ERROR_NOT_FOUND",
    INVALID_CONTEXT: b"CUDA_ERROR_INVALID_CONTEXT",
    TOO_LARGE: b"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
    DURING_CAPTURE: b"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    UNKNOWN: b"CUDA_ERROR_UNKNOWN",
}
_FATBIN_MAGIC = b"\x50\xed\x55\xba"
_ALIGNMENT = 256
_SIZES = [c_uint] * 7

_SIGNATURES: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuDeviceGetCount": [c_void_p],
    "cuDeviceGet": [c_void_p, c_int],
    "cuDeviceGetName": [c_void_p, c_int, c_int],
    "cuDeviceTotalMem_v2": [c_void_p, c_int],
    "cuDeviceGetAttribute": [c_void_p, c_int, c_int],
    "cuDriverGetVersion": [c_void_p],
    "cuGetErrorName": [c_int, c_void_p],
    "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxSynchronize": [],
    "cuMemAlloc_v2": [c_void_p, c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemcpyHtoD_v2": [c_uint64, c_void_p, c_size_t],
    "cuMemcpyDtoH_v2": [c_void_p, c_uint64, c_size_t],
    "cuMemcpyHtoDAsync_v2": [c_uint64, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
    "cuMemcpyDtoDAsync_v2": [c_uint64, c_uint64, c_size_t, c_void_p],
    "cuMemsetD8_v2": [c_uint64, c_ubyte, c_size_t],
    "cuModuleLoadDataEx": [c_void_p, c_void_p, c_uint, c_void_p, c_void_p],
    "cuModuleUnload": [c_void_p],
    "cuModuleGetFunction": [c_void_p, c_void_p, c_char_p],
    "cuFuncSetAttribute": [c_void_p, c_int, c_int],
    "cuFuncGetAttribute": [c_void_p, c_int, c_void_p],
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": [c_void_p, c_void_p, c_int, c_size_t],
    "cuLaunchKernel": [c_void_p, *_SIZES, c_void_p, c_void_p, c_void_p],
    "cuLaunchCooperativeKernel": [c_void_p, *_SIZES, c_void_p, c_void_p],
    "cuStreamCreate": [c_void_p, c_uint],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuStreamIsCapturing": [c_void_p, c_void_p],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
    "cuStreamBeginCapture_v2": [c_void_p, c_int],
    "cuStreamEndCapture": [c_void_p, c_void_p],
    "cuGraphInstantiateWithFlags": [c_void_p, c_void_p, c_uint64],
    "cuGraphDestroy": [c_void_p],
    "cuGraphExecDestroy": [c_void_p],
    "cuGraphLaunch": [c_void_p, c_void_p],
    "cuEventCreate": [c_void_p, c_uint],
    "cuEventDestroy_v2": [c_void_p],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventElapsedTime": [c_void_p, c_void_p, c_void_p],
}

Kernel = tuple[str, list[int]]
"""Code of a kernel at the NVVM dialect, and the bytes of its bindings."""


class DriverError(Exception):
    """A function returns this code."""

    def __init__(self, code: int) -> None:
        super().__init__(_NAMES[code])
        self.code = code


class StandInCuda:
    """The functions of `libcuda`, each an attribute that can be called with C types and has an address."""

    def __init__(
        self,
        *,
        target: str = "cuda:h200",
        capability: tuple[int, int] = (9, 0),
        multiprocessors: int = 132,
        blocks_per_multiprocessor: int = 1,
    ) -> None:
        self.target, self.capability, self.multiprocessors = target, capability, multiprocessors
        self.blocks_per_multiprocessor = blocks_per_multiprocessor
        self.counts: Counter[str] = Counter()
        self.kernels: dict[str, Kernel] = {}
        self.failing = ""
        """Kernel that cannot be launched."""
        self.error: BaseException | None = None
        """What went wrong in here, such as a fault of a kernel."""
        self.seconds = 0.0
        self._memory: dict[int, np.ndarray[Any, Any]] = {}
        self._objects: list[Any] = [None]
        self._capturing: dict[int, list[Callable[[], None]]] = {}
        self._thread = threading.local()
        self._lock = threading.RLock()
        for name, types in _SIGNATURES.items():
            kind = ctypes.CFUNCTYPE(c_int, *types)
            setattr(self, name, kind(functools.partial(self._answer, name)))

    def learn(self, dump: Path) -> None:
        """Takes the kernels of a program that was dumped to a folder."""
        flow = describe_launches(dump)
        tensors = flow["tensors"]

        def take(steps: Any) -> None:
            for step in steps:
                if "loop" in step:
                    take(step["loop"].get("body", ()))
                elif "kernel" in step:
                    sizes = [_bytes(tensors[n]) for n in (*step["inputs"], *step["outputs"])]
                    self.kernels[step["kernel"]] = flow["kernels"], sizes

        take(flow["launches"])

    def take_counts(self) -> Counter[str]:
        """Returns how often each function was called since the last time."""
        counts, self.counts = self.counts, Counter()
        return counts

    def _answer(self, name: str, *arguments: Any) -> int:
        with self._lock:
            self.counts[name] += 1
            try:
                getattr(self, f"_{name}")(*arguments)
            except DriverError as error:
                return error.code
            except BaseException as error:  # an exception does not pass through C
                self.error = error
                return UNKNOWN
            return 0

    def _cuInit(self, flags: int) -> None: ...

    def _cuDeviceGetCount(self, count: int) -> None:
        c_int.from_address(count).value = 1

    def _cuDeviceGet(self, device: int, ordinal: int) -> None:
        c_int.from_address(device).value = 0

    def _cuDeviceGetName(self, name: int, size: int, device: int) -> None:
        ctypes.memmove(name, b"a stand-in\0", 11)

    def _cuDeviceTotalMem_v2(self, size: int, device: int) -> None:
        c_size_t.from_address(size).value = 1 << 37

    def _cuDriverGetVersion(self, version: int) -> None:
        c_int.from_address(version).value = 13000

    def _cuDeviceGetAttribute(self, value: int, which: int, device: int) -> None:
        known = {16: self.multiprocessors, 38: 60 << 20, 39: 2048, 81: 228 << 10}
        known |= {75: self.capability[0], 76: self.capability[1]}
        c_int.from_address(value).value = known[which]

    def _cuGetErrorName(self, code: int, text: int) -> None:
        c_char_p.from_address(text).value = _NAMES[code]

    def _cuDevicePrimaryCtxRetain(self, context: int, device: int) -> None:
        c_void_p.from_address(context).value = 1

    def _cuCtxSetCurrent(self, context: int | None) -> None:
        self._thread.has_context = context == 1

    def _cuCtxSynchronize(self) -> None:
        self._wait()

    def _cuMemAlloc_v2(self, pointer: int, size: int) -> None:
        self._wait()
        array = np.full(size + _ALIGNMENT, 0xFF, np.uint8)  # what nobody wrote is NaN
        address = -(-array.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        self._memory[address] = array
        c_uint64.from_address(pointer).value = address

    def _cuMemFree_v2(self, pointer: int) -> None:
        del self._memory[pointer]

    def _cuMemcpyHtoD_v2(self, to: int, source: int, size: int) -> None:
        self._wait()
        ctypes.memmove(to, source, size)

    def _cuMemcpyDtoH_v2(self, to: int, source: int, size: int) -> None:
        self._wait()
        ctypes.memmove(to, source, size)

    def _cuMemcpyHtoDAsync_v2(self, to: int, source: int, size: int, stream: int | None) -> None:
        self._do(stream, lambda: ctypes.memmove(to, source, size))

    def _cuMemcpyDtoHAsync_v2(self, to: int, source: int, size: int, stream: int | None) -> None:
        self._do(stream, lambda: ctypes.memmove(to, source, size))

    def _cuMemcpyDtoDAsync_v2(self, to: int, source: int, size: int, stream: int | None) -> None:
        self._do(stream, lambda: ctypes.memmove(to, source, size))

    def _cuMemsetD8_v2(self, pointer: int, byte: int, size: int) -> None:
        ctypes.memset(pointer, byte, size)

    def _cuModuleLoadDataEx(self, module: int, image: int, count: int, options: int, values: int) -> None:
        self._wait()
        head = ctypes.string_at(image, 4)
        if head == _FATBIN_MAGIC:
            header, size = c_uint.from_address(image + 4).value >> 16, c_uint64.from_address(image + 8).value
            text = ctypes.string_at(image, header + size)
        else:
            text = ctypes.string_at(image)
        self._make(module, {name.decode() for name in re.findall(rb"\.visible \.entry (\w+)", text)})

    def _cuModuleUnload(self, module: int) -> None: ...

    def _cuModuleGetFunction(self, function: int, module: int, name: bytes) -> None:
        if name.decode() not in self._objects[module]:
            raise DriverError(NOT_FOUND)
        self._make(function, name.decode())

    def _cuFuncSetAttribute(self, function: int, which: int, value: int) -> None: ...

    def _cuFuncGetAttribute(self, value: int, which: int, function: int) -> None:
        c_int.from_address(value).value = {3: 0, 4: 32}[which]

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, count: int, function: int, threads: int, shared: int
    ) -> None:
        c_int.from_address(count).value = self.blocks_per_multiprocessor

    def _cuLaunchKernel(self, function: int, *arguments: Any) -> None:
        *sizes, stream, parameters, _ = arguments
        self._launch(function, sizes, stream, parameters)

    def _cuLaunchCooperativeKernel(self, function: int, *arguments: Any) -> None:
        *sizes, stream, parameters = arguments
        if sizes[0] > self.blocks_per_multiprocessor * self.multiprocessors:
            raise DriverError(TOO_LARGE)
        self._launch(function, sizes, stream, parameters)

    def _launch(self, function: int, sizes: list[int], stream: int | None, parameters: int) -> None:
        name = self._objects[function]
        if name == self.failing:
            raise DriverError(UNKNOWN)
        code, bindings = self.kernels[name]
        pointers = (c_uint64 * len(bindings)).from_address(parameters)
        addresses = [c_uint64.from_address(pointer).value for pointer in pointers]
        assert all(address % 16 == 0 for address in addresses)
        self._do(stream, lambda: self._simulate(name, code, bindings, addresses, sizes))

    def _simulate(
        self, name: str, code: str, bindings: list[int], addresses: list[int], sizes: list[int]
    ) -> None:
        arrays = [
            np.ctypeslib.as_array((c_ubyte * size).from_address(address))
            for address, size in zip(addresses, bindings, strict=True)
        ]
        report = tilewright.simulate(
            code,
            name,
            sizes[:3],
            arrays,
            target=self.target,
            block=sizes[3:6],
            dynamic_shared_bytes=sizes[6],
        )
        report.check()
        self.seconds += LAUNCH_SECONDS

    def _cuStreamCreate(self, stream: int, flags: int) -> None:
        self._make(stream, "a stream")

    def _cuStreamDestroy_v2(self, stream: int) -> None: ...

    def _cuStreamSynchronize(self, stream: int | None) -> None:
        self._wait()

    def _cuStreamIsCapturing(self, stream: int | None, status: int) -> None:
        self._check_context()
        c_int.from_address(status).value = (stream or 0) in self._capturing

    def _cuStreamWaitEvent(self, stream: int | None, event: int, flags: int) -> None:
        if (stream or 0) in self._capturing:
            raise DriverError(DURING_CAPTURE)

    def _cuStreamBeginCapture_v2(self, stream: int, mode: int) -> None:
        self._capturing[stream] = []

    def _cuStreamEndCapture(self, stream: int, graph: int) -> None:
        self._make(graph, self._capturing.pop(stream))

    def _cuGraphInstantiateWithFlags(self, made: int, graph: int, flags: int) -> None:
        self._make(made, list(self._objects[graph]))

    def _cuGraphDestroy(self, graph: int) -> None: ...

    def _cuGraphExecDestroy(self, graph: int) -> None: ...

    def _cuGraphLaunch(self, graph: int, stream: int | None) -> None:
        for work in self._objects[graph]:
            self._do(stream, work)

    def _cuEventCreate(self, event: int, flags: int) -> None:
        self._make(event, 0.0)

    def _cuEventDestroy_v2(self, event: int) -> None: ...

    def _cuEventRecord(self, event: int, stream: int | None) -> None:
        def record() -> None:
            self._objects[event] = self.seconds

        self._do(stream, record)

    def _cuEventSynchronize(self, event: int) -> None:
        self._wait()

    def _cuEventElapsedTime(self, milliseconds: int, begin: int, end: int) -> None:
        ctypes.c_float.from_address(milliseconds).value = (self._objects[end] - self._objects[begin]) * 1e3

    def _make(self, place: int, what: Any) -> None:
        """Writes the handle of a new object to an address."""
        self._check_context()
        self._objects.append(what)
        c_void_p.from_address(place).value = len(self._objects) - 1

    def _check_context(self) -> None:
        if not getattr(self._thread, "has_context", False):
            raise DriverError(INVALID_CONTEXT)

    def _wait(self) -> None:
        """Checks that the thread has a context, and may allocate or wait."""
        self._check_context()
        if self._capturing:
            raise DriverError(DURING_CAPTURE)

    def _do(self, stream: int | None, work: Callable[[], Any]) -> None:
        self._check_context()
        if (stream or 0) in self._capturing:
            self._capturing[stream or 0].append(work)
        else:
            work()


def _bytes(tensor: dict[str, Any]) -> int:
    return int(np.prod(tensor["shape"])) * element_dtype(tensor["element"]).itemsize
