"""A fake of the CUDA driver's library: its memory is the host's, and kernels run on the simulated device.

It is called with C types like the library, so that its callers are tested as they run.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tilewright
from tilewright.reference.oracle import float64_reference
from tilewright.runtime.cold import READER
from tilewright.simulator.programs import describe_launches

from benchmarks.gpu_check.bare import BareKernels, BareProgram
from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.timing import Timing

TARGET = "cuda:h200"
LAUNCH_SECONDS, FILL_SECONDS = 10e-6, 150e-6
_INVALID_IMAGE, _NOT_FOUND = 200, 500
# Larger buffers only serve to flush a cache, which the fake does not have.
_LARGEST_FILL = 64 << 20


class FakeCuda:
    """The used functions of `libcuda`. `code` has the kernels of the PTX at the NVVM dialect."""

    def __init__(
        self,
        capability: tuple[int, int] = (9, 0),
        multiprocessors: int = 132,
        threads: int = 2048,
        shared_bytes: int = 228 << 10,
    ) -> None:
        self.code = ""
        self.capability = capability
        self.multiprocessors = multiprocessors
        self.threads, self.shared_bytes = threads, shared_bytes
        self.seconds = 0.0
        self._is_done: set[tuple[int, ...]] = set()
        self._memory: dict[int, np.ndarray[Any, Any]] = {}
        self._objects: list[Any] = [None]

    def cuInit(self, flags: Any) -> int:
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def cuDeviceGet(self, device: Any, ordinal: Any) -> int:
        device._obj.value = 0
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        context._obj.value = 1
        return 0

    def cuCtxSetCurrent(self, context: Any) -> int:
        return 0

    def cuCtxSynchronize(self) -> int:
        return 0

    def cuDeviceGetName(self, name: Any, size: Any, device: Any) -> int:
        name.value = b"a simulated GPU"
        return 0

    def cuDeviceTotalMem_v2(self, size: Any, device: Any) -> int:
        size._obj.value = 1 << 37
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 13000
        return 0

    def cuDeviceGetAttribute(self, value: Any, which: Any, device: Any) -> int:
        known = {
            16: self.multiprocessors,
            38: 60 << 20,
            39: self.threads,
            75: self.capability[0],
            76: self.capability[1],
            81: self.shared_bytes,
        }
        value._obj.value = known[which.value]
        return 0

    def cuGetErrorName(self, code: Any, text: Any) -> int:
        text._obj.value = {_INVALID_IMAGE: b"CUDA_ERROR_INVALID_IMAGE"}.get(
            code.value, b"CUDA_ERROR_NOT_FOUND"
        )
        return 0

    def cuMemAlloc_v2(self, pointer: Any, size: Any) -> int:
        array = np.empty(size.value, np.uint8)
        pointer._obj.value = array.ctypes.data
        self._memory[array.ctypes.data] = array
        return 0

    def cuMemFree_v2(self, pointer: Any) -> int:
        del self._memory[pointer.value]
        return 0

    def cuMemcpyHtoD_v2(self, target: Any, source: Any, size: Any) -> int:
        ctypes.memmove(target.value, source.value, size.value)
        return 0

    def cuMemcpyDtoH_v2(self, target: Any, source: Any, size: Any) -> int:
        ctypes.memmove(target.value, source.value, size.value)
        return 0

    def cuMemcpyDtoDAsync_v2(self, target: Any, source: Any, size: Any, stream: Any) -> int:
        self.seconds += 2 * FILL_SECONDS
        return 0

    def cuMemsetD8_v2(self, pointer: Any, byte: Any, size: Any) -> int:
        if size.value <= _LARGEST_FILL:
            ctypes.memset(pointer.value, byte.value, size.value)
            self._is_done.clear()
        self.seconds += FILL_SECONDS
        return 0

    def cuModuleLoadDataEx(self, module: Any, image: Any, count: Any, options: Any, values: Any) -> int:
        text = image.value.decode()
        wanted = re.search(r"^\.target sm_(\d)(\d)", text, re.MULTILINE)
        if wanted is None or (int(wanted[1]), int(wanted[2])) > self.capability:
            ctypes.memmove(values[0], b"unsupported .target\0", 20)
            return _INVALID_IMAGE
        module._obj.value = self._handle(re.findall(r"\.visible \.entry (\w+)", text))
        return 0

    def cuModuleUnload(self, module: Any) -> int:
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:
        if name.value.decode() not in self._objects[module.value]:
            return _NOT_FOUND
        function._obj.value = self._handle(name.value.decode())
        return 0

    def cuFuncSetAttribute(self, function: Any, which: Any, value: Any) -> int:
        return 0

    def cuFuncGetAttribute(self, value: Any, which: Any, function: Any) -> int:
        value._obj.value = {3: 0, 4: 32}[which.value]
        return 0

    def cuLaunchKernel(self, function: Any, *arguments: Any) -> int:
        sizes = [argument.value for argument in arguments[:7]]
        parameters = [ctypes.c_uint64.from_address(p).value for p in arguments[8]]
        launch = (function.value, *parameters)
        if launch not in self._is_done:  # a repetition would give the same results
            self.launch(self._objects[function.value], sizes[:3], sizes[3:6], sizes[6], parameters)
            self._is_done.add(launch)
        self.seconds += LAUNCH_SECONDS
        return 0

    def launch(
        self, kernel: str, grid: list[int], block: list[int], shared: int, parameters: list[int]
    ) -> None:
        """Runs a kernel on buffers, which are given by their addresses."""
        arrays = [self._memory[pointer] for pointer in parameters]
        if kernel == READER:
            return
        report = tilewright.simulate(
            self.code, kernel, grid, arrays, target=TARGET, block=block, dynamic_shared_bytes=shared
        )
        report.check()

    def cuEventCreate(self, event: Any, flags: Any) -> int:
        event._obj.value = self._handle(0.0)
        return 0

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        self._objects[event.value] = self.seconds
        return 0

    def cuEventElapsedTime(self, milliseconds: Any, begin: Any, end: Any) -> int:
        milliseconds._obj.value = (self._objects[end.value] - self._objects[begin.value]) * 1e3
        return 0

    def cuEventDestroy_v2(self, event: Any) -> int:
        return 0

    def _handle(self, what: Any) -> int:
        self._objects.append(what)
        return len(self._objects) - 1


class SimulatedKernels(BareKernels):
    """Our kernels on the fake driver; each workload is compiled again to get its kernels at the NVVM dialect."""

    def __init__(self) -> None:
        self.library = FakeCuda()
        super().__init__(self.library)

    def prepare(self, case: Case) -> BareProgram:
        with tempfile.TemporaryDirectory() as folder:
            tilewright.compile(case.model, TARGET, tuning=False, dump_dir=folder, deploy=False)
            self.library.code = describe_launches(Path(folder))["kernels"]
        return super().prepare(case)


class IdleKernels(SimulatedKernels):
    """Fake whose launches do nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.library.launch = lambda *_: None  # type: ignore[method-assign]


class DyingKernels(SimulatedKernels):
    """Fake whose first launch kills the process."""

    def prepare(self, case: Case) -> BareProgram:
        os._exit(3)


class Oracle:
    """Whole programs with correct results: the float64 reference times a factor."""

    factor = 1.0

    def versions(self) -> dict[str, Any]:
        return {}

    def prepare(self, case: Case) -> ReadyOracle:
        reference = float64_reference(case.model, case.inputs)
        return ReadyOracle([self.factor * y for y in reference])


class WrongOracle(Oracle):
    """Whole programs with results that are wrong by half but finite."""

    factor = 1.5


class FailingOracle(Oracle):
    """Whole programs that cannot be loaded."""

    def prepare(self, case: Case) -> ReadyOracle:
        raise RuntimeError("the module cannot be loaded")


class ReadyOracle:
    """A program with precomputed results."""

    def __init__(self, results: list[Any]) -> None:
        self._results = results

    def outputs(self) -> list[Any]:
        return self._results

    def time(self, *, seconds: float) -> Timing:
        return Timing(kernel_s=None, call_s=LAUNCH_SECONDS, samples=1)
