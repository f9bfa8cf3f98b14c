"""Runs our kernels without IREE, launched through the driver one after another as IREE would launch them."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from typing import Any

from tilewright.runtime.cold import FLUSHED_BYTES, ColdCache
from tilewright.runtime.cuda import Buffer, Cuda, CudaEvent
from tilewright.runtime.tensors import LaunchTensors

from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.timing import Timing, host_seconds, median_of
from benchmarks.peers import Array, UnsupportedError

_SHARE_OF_LAUNCHES = 0.3
"""Share of the timing budget that is used to time single launches as well."""
_LAUNCHES_PER_FLUSH = 10
"""Launches that the host certainly makes before the GPU has overwritten the flush buffer."""
_ROUNDS_OF_LAUNCHES = 20


class BareKernels:
    """System that runs programs as nothing but our kernels."""

    def __init__(self, library: Any = None) -> None:
        self._cuda = Cuda(library)

    def versions(self) -> dict[str, Any]:
        """Returns the GPU and its driver version."""
        device = self._cuda.describe()
        return {
            "gpu": device.name,
            "capability": f"{device.capability[0]}.{device.capability[1]}",
            "multiprocessors": device.multiprocessors,
            "l2_bytes": device.l2_bytes,
            "memory_bytes": device.memory_bytes,
            "driver": device.driver,
        }

    def prepare(self, case: Case) -> BareProgram:
        """Loads kernels and uploads the buffers that they read."""
        return BareProgram(self._cuda, case)

    def copy_gb_per_s(self) -> float:
        """Measures a copy from memory to memory, in GB/s; read and written bytes both count."""
        source, target = self._cuda.allocate(FLUSHED_BYTES), self._cuda.allocate(FLUSHED_BYTES)
        source.fill(1)
        begin, end = self._cuda.event(), self._cuda.event()

        def sample() -> float:
            begin.record()
            target.copy_from(source)
            end.record()
            self._cuda.synchronize()
            return end.seconds_since(begin)

        seconds, _ = median_of(sample, seconds=0.2)
        return 2 * FLUSHED_BYTES / seconds * 1e-9


class BareProgram:
    """The launches of one program."""

    def __init__(self, cuda: Cuda, case: Case) -> None:
        self._cuda = cuda
        flow = case.launches
        if not flow["launches"]:
            raise UnsupportedError("none of its kernels is ours")
        if any("loop" in launch for launch in flow["launches"]):
            raise UnsupportedError("it repeats launches, which `direct` runs")
        self._tensors = LaunchTensors(flow["tensors"], case.inputs, case.parameters)
        self._results: list[int] = [result["tensor"] for result in flow["results"]]
        self._buffers: dict[int, Buffer] = {}
        self._made: list[int] = []
        module = cuda.load(case.ptx)
        self._launches = []
        self.resources: dict[str, dict[str, int]] = {}
        for launch in flow["launches"]:
            kernel = module.kernel(launch["kernel"], dynamic_shared_bytes=launch["dynamic_shared_bytes"])
            self.resources[launch["kernel"]] = {
                "registers": kernel.registers,
                "local_bytes": kernel.local_bytes,
            }
            self._launches.append(
                kernel.bind(launch["workgroups"], launch["threads"], self._buffers_of(launch))
            )

    def outputs(self) -> list[Array] | None:
        """Returns the outputs of one run in memory that held other data; None if one depends on what IREE computes."""
        for number in self._made:
            self._buffers[number].fill(0xFF)
        self._run()
        self._cuda.synchronize()
        if not self._tensors.are_real(self._results):
            return None
        return [self._buffer(n).read(self._tensors.new(n)) for n in self._results]

    def time(self, *, seconds: float) -> Timing:
        """Returns times with a cold cache before every sample."""
        cache = ColdCache(self._cuda)

        def flush() -> None:
            for _ in range(math.ceil(len(self._launches) / _LAUNCHES_PER_FLUSH)):
                cache()

        begin, end = self._cuda.event(), self._cuda.event()

        def sample() -> float:
            flush()
            begin.record()
            self._run()
            end.record()
            self._cuda.synchronize()
            return end.seconds_since(begin)

        kernel, samples = median_of(sample, seconds=seconds * (1 - _SHARE_OF_LAUNCHES))
        call, _ = median_of(
            host_seconds(self._run, self._cuda.synchronize, flush), seconds=seconds * _SHARE_OF_LAUNCHES
        )
        each = (kernel,) if len(self._launches) == 1 else self._time_launches(flush)
        return Timing(kernel_s=kernel, call_s=call, samples=samples, launches_s=each)

    def _time_launches(self, flush: Callable[[], None]) -> tuple[float, ...]:
        marks = [self._cuda.event() for _ in range(len(self._launches) + 1)]
        rounds = [self._round(flush, marks) for _ in range(_ROUNDS_OF_LAUNCHES)]
        return tuple(statistics.median(times) for times in zip(*rounds, strict=True))

    def _round(self, flush: Callable[[], None], marks: list[CudaEvent]) -> list[float]:
        flush()
        marks[0].record()
        for launch, mark in zip(self._launches, marks[1:], strict=True):
            launch()
            mark.record()
        self._cuda.synchronize()
        return [later.seconds_since(earlier) for earlier, later in itertools.pairwise(marks)]

    def _run(self) -> None:
        for launch in self._launches:
            launch()

    def _buffers_of(self, launch: dict[str, Any]) -> list[Buffer]:
        read = [self._buffer(number) for number in launch["inputs"]]
        made: list[int] = launch["outputs"]
        arrays = [self._tensors.new(number) for number in made]
        self._tensors.put(made, arrays, is_real=self._tensors.are_real(launch["inputs"]))
        for number, array in zip(made, arrays, strict=True):
            self._buffers[number] = self._cuda.allocate(array.nbytes)
        self._made += made
        return [*read, *(self._buffers[number] for number in made)]

    def _buffer(self, number: int) -> Buffer:
        if number not in self._buffers:
            self._buffers[number] = self._cuda.upload(self._tensors.get(number))
        return self._buffers[number]
