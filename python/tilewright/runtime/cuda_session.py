"""Runs programs whose kernels are all ours on a GPU without IREE, with the code of its module: the same bits, and calls
that cost their launches."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.errors import ProgramError
from tilewright.records.kinds import CUDA
from tilewright.records.report import Report
from tilewright.records.signature import Array, Signature
from tilewright.runtime.constants import Constants
from tilewright.runtime.cuda import Buffer, Cuda, CudaError, CudaKernel
from tilewright.runtime.cuda_tensors import is_on_gpu, library_of, locate
from tilewright.runtime.gpu_fit import NotResidentError
from tilewright.runtime.held import HeldFile
from tilewright.runtime.host_arrays import HostArrays
from tilewright.runtime.launch_loops import Step
from tilewright.runtime.launches import CodeImage, LaunchPlan, shape_of
from tilewright.runtime.slots import assign_slots
from tilewright.runtime.trace import Span

_ALIGNMENT = 256
"""Bytes that the addresses of constants, and of inputs from the host, are multiples of, as those that the driver
allocates are."""

_HOT = (
    "cuCtxSetCurrent",
    "cuLaunchKernel",
    "cuLaunchCooperativeKernel",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuStreamSynchronize",
    "cuStreamIsCapturing",
    "cuStreamWaitEvent",
    "cuEventRecord",
    "cuGraphLaunch",
    "cuGetErrorName",
)
"""Functions of the driver that calls use (`runtime/CudaProgram.h`)."""

GPU_THREAD = 1
"""Number by which traces know the GPU, besides the caller's thread."""


class CudaSession:
    """A program that is ready to be called, on this machine's first GPU. Calls from several threads take turns."""

    def __init__(
        self,
        plan: LaunchPlan,
        module: HeldFile,
        weights: Mapping[str, HeldFile],
        signature: Signature,
        *,
        entry: str,
        report: Report,
    ) -> None:
        """Raises `ProgramError` if there is no GPU, the module lacks a kernel or a file lacks a weight, and
        `NotResidentError` if a kernel with grid barriers does not fit this GPU."""
        from tilewright import _runtime

        self._entry, self._signature = entry, signature
        self._cuda = cuda = Cuda()
        kernels = _load(cuda, plan, module)
        for step in plan.steps:
            if step.meets_at_grid:
                _check_residency(cuda, kernels[step.kernel], step, entry)
        self._steps = [step.kernel or "copy" for step in plan.steps]
        slotted = assign_slots(plan, len(signature.inputs))
        constants = Constants(plan, module, weights, kind=CUDA)
        self._constants, addresses = _upload(cuda, [constants.get(number) for number in slotted.constants])
        for file in weights.values():
            file.check()  # a file that changed meanwhile may have affected what was uploaded
        self._own = cuda.allocate(slotted.own_bytes)
        self._done, self._stream = cuda.event(is_timed=False), cuda.stream()
        self._arrays = HostArrays(signature, weights, entry=entry)
        self.defaults, self.checked = self._arrays.defaults, self._arrays.checked
        self._last = [cuda.upload(self.defaults.array(spec)) for spec in signature.inputs if spec.has_default]
        self._shapes = [shape_of(spec) for spec in signature.outputs]
        self._bytes = [*plan.input_bytes, *plan.output_bytes]
        labels = {kernel.name: f"{kernel.name} ({_ops(kernel.ops)})" for kernel in report.kernels}
        self._kernels = kernels  # which keep their module loaded
        self._program = _runtime.CudaProgram(
            driver={name: cuda.address_of(name) for name in _HOT},
            context=cuda.context,
            kernels=[
                (kernels[step.kernel].handle, step.threads, step.shared_bytes, step.meets_at_grid)
                if step.kernel
                else (0, 1, 0, False)
                for step in plan.steps
            ],
            launches=[
                (labels.get(kernel, kernel), workgroups, slots, size)
                for kernel, workgroups, slots, size in slotted.launches
            ],
            loops=slotted.loops,
            input_bytes=plan.input_bytes,
            output_bytes=plan.output_bytes,
            constants=addresses,
            offsets=slotted.offsets,
            own=self._own.pointer,
            done=self._done.handle,
        )

    def takes(self, arrays: Sequence[Any]) -> bool:
        """Returns True if some of these are on the GPU, or if all are contiguous arrays that fit."""
        return self._arrays.takes(arrays) or any(map(is_on_gpu, arrays))

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Runs the program on arrays that the signature has accepted, or on tensors on the GPU.

        Arrays are copied to the GPU, and the results are arrays. With tensors, the kernels are launched on the caller's
        stream, and the results are tensors of the same library that are ready in the order of this stream. Raises
        `InputError` for tensors that do not fit, and `ProgramError` with the name of a kernel that fails.
        """
        if any(map(is_on_gpu, arrays)):
            return self._call_tensors(arrays)
        lent = self._arrays.lent(arrays)
        placed, stream = self._staged[1], self._stream.handle
        return self._arrays.results(self._run(self._program.run_on_host, placed, stream, *lent))

    def run_fitting(self, arrays: Sequence[Any]) -> list[Any] | None:
        """Runs the program on arrays or tensors that `takes` accepts; returns None for others."""
        return self(arrays) if self.takes(arrays) else None

    def enqueue(self, inputs: Sequence[int], outputs: Sequence[int], stream: int) -> None:
        """Launches the kernels on a stream of the driver and returns. `inputs` and `outputs` are addresses of tensors
        that fit, multiples of 16. Nothing is allocated and nothing waits for the GPU."""
        self._run(self._program.run, inputs, outputs, stream)

    def trace(self, arrays: Sequence[Array]) -> list[Span]:
        """Runs the program on arrays and returns when the host made each launch, and the time of each kernel on the
        GPU, measured by its events. A kernel in a loop has the times of the last step."""
        marks = self._marks
        self._cuda.use()
        self._stream.synchronize()
        started = time.perf_counter()
        marks[0].record(self._stream.handle)
        marks[0].synchronize()
        ended = time.perf_counter()
        first, *events = marks
        handles = [event.handle for event in events]
        lent = self._arrays.lent(arrays)
        placed, stream = self._staged[1], self._stream.handle
        made = self._run(self._program.trace_on_host, placed, stream, handles, *lent)
        # The first event happened between both readings of the clock.
        times = [(started + ended) / 2 + event.seconds_since(first) for event in events]
        launches = zip(self._steps, made, strict=True)
        kernels = zip(self._steps, times, times[1:], strict=False)
        return [
            *(Span(f"launch {kernel}", 0, begin, end) for kernel, (begin, end) in launches),
            *(Span(kernel, GPU_THREAD, begin, end) for kernel, begin, end in kernels),
        ]

    def bind(self, arrays: Sequence[Any], *, graph: bool = False) -> CudaCall:
        """Returns a call on copies, on the GPU, of arrays or tensors that fit; with `graph`, it is captured into a CUDA
        graph, which the driver launches at once."""
        return CudaCall(self, arrays, graph=graph)

    def _call_tensors(self, values: Sequence[Any]) -> list[Any]:
        library = library_of(values)
        stream = library.stream(self._stream.handle)
        placed = self._located(values, stream)
        outputs = [
            library.empty(self._cuda, shape, spec)
            for shape, spec in zip(self._shapes, self._signature.outputs, strict=True)
        ]
        self.enqueue([at for at, _ in placed], [at for at, _ in outputs], stream)
        return [tensor for _, tensor in outputs]

    def _located(self, values: Sequence[Any], stream: int) -> list[tuple[int, Any]]:
        """Returns the address of each input on the GPU, and what keeps its memory."""
        inputs = self._signature.inputs
        if not len(self._signature.required) <= len(values) <= len(inputs):
            self._signature.check_inputs(values)  # which raises
        placed = [locate(value, spec, stream) for value, spec in zip(values, inputs, strict=False)]
        missing = self._last[len(self._last) - (len(inputs) - len(values)) :]
        return placed + [(buffer.pointer, buffer) for buffer in missing]

    @functools.cached_property
    def _staged(self) -> tuple[Buffer, list[int]]:
        """Memory on the GPU for inputs and outputs that are on the host, made at the first such call."""
        self._cuda.use()
        return _reserve(self._cuda, self._bytes)

    @functools.cached_property
    def _marks(self) -> list[Any]:
        self._cuda.use()
        return [self._cuda.event() for _ in range(len(self._steps) + 2)]

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except RuntimeError as error:
            raise ProgramError(f"failed while running: {error}", where=self._entry) from None


class CudaCall:
    """A program with its inputs in place on the GPU; calling it runs the program and waits for it."""

    def __init__(self, session: CudaSession, values: Sequence[Any], *, graph: bool) -> None:
        session._cuda.use()
        self._session = session
        self._memory, self._placed = _reserve(session._cuda, session._bytes)
        self._library = library_of(values) if any(map(is_on_gpu, values)) else None
        self._stream = (
            session._cuda.stream()
        )  # of its own, because a capture takes all that is launched on it
        self._place(values)
        self._graph = self._stream.capture(self._enqueue) if graph else None

    def _enqueue(self) -> None:
        inputs = len(self._session._signature.inputs)
        self._session.enqueue(self._placed[:inputs], self._placed[inputs:], self._stream.handle)

    def _place(self, values: Sequence[Any]) -> None:
        session = self._session
        if self._library is None:
            for address, array in zip(self._placed, session._arrays.lent(values), strict=False):
                session._cuda.upload_to(address, array)
            return
        stream = self._library.stream(self._stream.handle)
        located = session._located(values, stream)
        for address, (source, _), size in zip(self._placed, located, session._bytes, strict=False):
            session._cuda.copy(address, source, size, stream)
        session._cuda.synchronize()  # the copies are on the caller's stream, and calls are not

    def __call__(self) -> None:
        session = self._session
        session._cuda.use()
        if self._graph is not None:
            session._run(session._program.launch_graph, self._graph.handle, self._stream.handle)
        else:
            self._enqueue()
        try:
            self._stream.synchronize()
        except CudaError as error:
            raise ProgramError(f"failed while running: {error.message}", where=session._entry) from None

    def outputs(self) -> list[Any]:
        """Returns the results of the last call, which the caller owns: tensors if the inputs were, else arrays."""
        session, signature = self._session, self._session._signature
        cuda, inputs = session._cuda, len(signature.inputs)
        cuda.use()
        placed = zip(self._placed[inputs:], session._bytes[inputs:], strict=True)
        results = []
        for (address, size), spec, shape in zip(placed, signature.outputs, session._shapes, strict=True):
            if self._library is None:
                results.append(cuda.read_at(address, np.empty(shape, spec.numpy_dtype)))
                continue
            own, tensor = self._library.empty(cuda, shape, spec)
            cuda.copy(own, address, size, self._library.stream(self._stream.handle))
            results.append(tensor)
        return results

    def __repr__(self) -> str:
        return "<tilewright call of a program with its inputs in place: call it, then .outputs()>"


def _load(cuda: Cuda, plan: LaunchPlan, module: HeldFile) -> dict[str, CudaKernel]:
    """Loads the kernels for this GPU from the module.

    Asking for registers makes the driver load a kernel now. It would otherwise do so at the first launch, which a
    capture into a graph does not allow.
    """
    image = _image(cuda, plan, module)
    loaded = cuda.load(bytes(memoryview(module.buffer)[image.offset : image.offset + image.bytes]))
    kernels = {}
    for step in plan.steps:
        if step.kernel and step.kernel not in kernels:
            kernels[step.kernel] = loaded.kernel(step.kernel, dynamic_shared_bytes=step.shared_bytes)
            _ = kernels[step.kernel].registers
    return kernels


def _image(cuda: Cuda, plan: LaunchPlan, module: HeldFile) -> CodeImage:
    """Returns the code for the most capable GPU that is not beyond this one."""
    has = cuda.describe().capability
    fitting = [image for image in plan.images if image.runs_on(has)]
    if not fitting:
        raise ProgramError(
            f"it has no kernels for a GPU of compute capability {has[0]}.{has[1]}",
            where=str(module.path),
            hint=f"compile it for target sm_{has[0]}{has[1]}",
        )
    return max(fitting, key=lambda image: image.least)


def _check_residency(cuda: Cuda, kernel: CudaKernel, step: Step, entry: str) -> None:
    """Asks the driver whether all blocks of a kernel with grid barriers run at once: a part of a GPU (MIG) has fewer
    multiprocessors than its kind."""
    blocks, multiprocessors = kernel.resident_blocks(step.threads), cuda.multiprocessors
    if blocks * multiprocessors < step.workgroups:
        raise NotResidentError(
            f"the {step.workgroups} blocks of kernel {step.kernel} wait for each other, but this GPU runs "
            f"{blocks * multiprocessors} at once ({blocks} on each of {multiprocessors} multiprocessors)",
            where=entry,
            hint="compile it with grid_sync=False (--no-grid-sync)",
        )


def _upload(cuda: Cuda, arrays: Sequence[Array]) -> tuple[Buffer, list[int]]:
    memory, addresses = _reserve(cuda, [array.nbytes for array in arrays])
    for address, array in zip(addresses, arrays, strict=True):
        cuda.upload_to(address, array)
    return memory, addresses


def _reserve(cuda: Cuda, sizes: Sequence[int]) -> tuple[Buffer, list[int]]:
    """Allocates tensors in one piece, and returns their addresses."""
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
    memory = cuda.allocate(ends[-1])
    return memory, [memory.pointer + start for start in ends[:-1]]


def _ops(ops: Sequence[Any]) -> str:
    """Returns the names of the first and the last op of a kernel in the model."""
    names = list(dict.fromkeys(op.location or op.op for op in ops))
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}" if names else "no op"
