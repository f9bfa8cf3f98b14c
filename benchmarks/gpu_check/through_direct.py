"""Runs our programs without IREE, as Python's callers do: on PyTorch's tensors, if it is installed, else on arrays.

A program must give the same bits in every way in which it can be called; a difference is a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from tilewright.runtime.cold import ColdCache
from tilewright.runtime.cuda import Cuda
from tilewright.runtime.direct import is_available

from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.timing import Timing, median_of
from benchmarks.peers import Array, UnsupportedError

_THREADS, _CALLS = 4, 5


class ThroughDirect:
    """System that launches the kernels of a call through the driver, on the caller's stream."""

    is_graph = False

    def __init__(self) -> None:
        if not is_available():
            raise ImportError("the bundle has no extension module that runs kernels (--runtime)")
        self._cuda = Cuda()

    def versions(self) -> dict[str, Any]:
        """Returns nothing: the driver is that of `kernels`."""
        return {}

    def prepare(self, case: Case) -> DirectCalls:
        """Loads the kernels and uploads weights."""
        if case.program.runtime != "direct":
            raise UnsupportedError("IREE computes a part of it")
        return DirectCalls(self._cuda, case, is_graph=self.is_graph)


class ThroughGraph(ThroughDirect):
    """The same with the launches of a call captured into one CUDA graph."""

    is_graph = True


class DifferentBitsError(RuntimeError):
    """Two ways to call a program give different results."""


class DirectCalls:
    """A loaded program and its inputs."""

    def __init__(self, cuda: Cuda, case: Case, *, is_graph: bool) -> None:
        self._cuda, self._program, self._inputs, self._is_graph = cuda, case.program, case.inputs, is_graph
        self._bound = self._program.bind(*self._inputs, graph=is_graph)

    def outputs(self) -> list[Array]:
        """Returns the outputs of one call, after comparing them with those of the other ways."""
        self._bound()
        results: list[Array] = self._bound.outputs()
        for way, others in self._ways():
            for number, (ours, other) in enumerate(zip(results, others, strict=True)):
                if ours.tobytes() != other.tobytes():
                    raise DifferentBitsError(f"result {number} has other bits {way}")
        return results

    def _ways(self) -> Iterator[tuple[str, Sequence[Array]]]:
        """Yields the results of other ways to call the program, with what is said of a difference."""
        if self._is_graph:
            self._bound()
            yield "when its graph is launched again", self._bound.outputs()
        else:
            yield "with arrays", self._program(*self._inputs)
            with ThreadPoolExecutor(_THREADS) as pool:
                for results in pool.map(lambda _: self._program(*self._inputs), range(_THREADS * _CALLS)):
                    yield "in several threads", results
        session = self._program.session()  # IREE's
        call = session.bind(self._inputs, self._program.signature)
        call()
        yield "in IREE", call.outputs()
        if find_spec("torch") is not None:
            from benchmarks.gpu_check import torch_calls

            torch_inputs = torch_calls.on_gpu(self._inputs)
            yield from (torch_calls.captured if self._is_graph else torch_calls.called)(
                self._program, torch_inputs
            )

    def time(self, *, seconds: float) -> Timing:
        """Returns times with a cold cache before every call: of the GPU where launches are on the caller's stream, and
        of the host until the results are there."""
        call = self._call_of_a_user()
        cache, begin, end = ColdCache(self._cuda), self._cuda.event(), self._cuda.event()

        def on_gpu() -> float:
            cache()
            begin.record()
            call()
            end.record()
            self._cuda.synchronize()
            return end.seconds_since(begin)

        def on_host() -> float:
            cache()
            self._cuda.synchronize()
            started = time.perf_counter()
            call()
            if not self._is_graph:
                self._cuda.synchronize()
            return time.perf_counter() - started

        measured, samples = median_of(on_host, seconds=seconds / 2)
        kernel = None if self._is_graph else median_of(on_gpu, seconds=seconds / 2)[0]
        return Timing(kernel_s=kernel, call_s=measured, samples=samples)

    def _call_of_a_user(self) -> Callable[[], Any]:
        """Returns a call whose inputs are on the GPU; one of a graph waits for its results."""
        if self._is_graph or find_spec("torch") is None:
            return self._bound
        from benchmarks.gpu_check import torch_calls

        tensors = torch_calls.on_gpu(self._inputs)
        return lambda: self._program(*tensors)
