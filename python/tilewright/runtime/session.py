"""Runs a compiled module in IREE's runtime: loads its weights, moves arrays in and out, and calls it."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from iree import runtime

from tilewright.errors import ProgramError
from tilewright.iree.versions import check_iree
from tilewright.records.kinds import CPU, MachineKind
from tilewright.records.signature import (
    DEFAULTS_SCOPE,
    Array,
    Signature,
    TensorSpec,
)
from tilewright.runtime.at_exit import check_not_over, ended, release_at_exit
from tilewright.runtime.defaults import DefaultInputs
from tilewright.runtime.devices import (
    cuda_device,
    device_for,
    drivers,
    give_back_memory,
    occupy_pool,
    release_pool,
)
from tilewright.runtime.held import HeldFile, hold_module, hold_weights
from tilewright.runtime.interface import interface_of, load_module, reason_of
from tilewright.runtime.processor import ask_for_amx
from tilewright.runtime.transfer import element_type, integer_type, pull, read_view

# Flags that every call requests, as IREE's integers.
_DEVICE_LOCAL = int(runtime.MemoryType.DEVICE_LOCAL)

_ANY_USE = int(runtime.BufferUsage.DEFAULT)

_DLPACK_CPU = 1
"""DLPack's number for CPU memory."""

_LONGEST_WAIT_SECONDS = 1.0
"""Seconds to wait for a daemon thread's call when the interpreter ends; it will not finish in any case."""


class Session:
    """A loaded module, ready to be called. Calls from several threads take turns."""

    def __init__(
        self,
        module: Path | HeldFile,
        parameters: Mapping[str, Path | HeldFile],
        *,
        entry: str | None,
        threads: int,
        kind: MachineKind = CPU,
    ) -> None:
        check_iree("iree-base-runtime")
        check_not_over(entry or str(module))
        if kind.in_process:
            ask_for_amx()
        self._device = device_for(threads) if kind.in_process else cuda_device()
        self._waiting = _without_preempting if threads > 1 else contextlib.nullcontext
        self._turn = threading.Lock()  # a context of IREE's VM runs one call at a time
        self._instance = runtime.VmInstance()
        file = hold_module(module)
        weights = {scope: hold_weights(held) for scope, held in parameters.items()}
        self._mapped = [held for held in weights.values() if held.is_mapped]
        self._check_files()
        vm_module = load_module(self._instance, file)
        archives = {scope: _archive(held) for scope, held in weights.items()}
        providers = [archive.create_provider(scope=scope) for scope, archive in archives.items()]
        modules = [runtime.create_hal_module(self._instance, self._device), vm_module]
        if providers:
            modules.insert(0, runtime.create_io_parameters_module(self._instance, *providers))
        try:
            context = runtime.VmContext(self._instance, modules=modules)
        except Exception as error:
            hint = "a GPU older than the target refuses its kernels" if kind.has_capabilities else None
            raise ProgramError(
                f"cannot be loaded: {reason_of(error)}", where=str(file.path), hint=hint
            ) from error
        self._check_files()  # initializers read weights
        interface = interface_of(vm_module, entry, file.path)
        self.entry = interface.entry
        self.signature = interface.signature
        self._function = vm_module.lookup_function(self.entry)
        self.defaults = DefaultInputs(dict(archives.get(DEFAULTS_SCOPE, {}).items()), where=self.entry)
        self._contexts = [context]  # a list, so that contexts are released before the device's pool buffer
        kept, give_back = (
            (occupy_pool(self._device), release_pool)
            if kind.unmaps_memory
            else (self._contexts, give_back_memory)
        )
        self._give_back = weakref.finalize(self, give_back, kept, self._device)
        self._give_back.atexit = False  # `release` calls it
        release_at_exit(self)

    def release(self) -> None:
        """Releases all objects of IREE's runtime, unless a daemon thread is in a call."""
        if not self._turn.acquire(timeout=_LONGEST_WAIT_SECONDS):
            return
        try:
            self._contexts.clear()
            self.defaults.release()
            self._give_back()
            self._device = self._function = self._instance = None
        finally:
            self._turn.release()

    @property
    def _open_device(self) -> Any:
        device = self._device
        if device is None:
            raise ended(self.entry)
        return device

    def __call__(self, arrays: Sequence[Array], signature: Signature | None) -> list[Array]:
        """Runs the program on arrays that the signature has accepted; without a signature, on any arrays."""
        call = self.bind(arrays, signature)
        call()
        return call.outputs()

    def bind(self, arrays: Sequence[Array], signature: Signature | None) -> BoundCall:
        """Returns a call whose inputs are already where the program reads them; missing ones have their defaults."""
        check_not_over(self.entry)
        missing = signature.inputs[len(arrays) :] if signature else ()
        arguments = runtime.VmVariantList(len(arrays) + len(missing))
        for index, array in enumerate(arrays):
            is_scalar = self.signature is not None and self.signature.inputs[index].is_scalar
            self._push(arguments, array, is_scalar=is_scalar)
        for spec in missing:
            arguments.push_ref(self.default(spec))
        return BoundCall(self, arguments, signature)

    def _invoke(self, arguments: Any, results: Any) -> None:
        try:
            with self._turn, self._waiting():
                _ = self._open_device
                self._check_files()
                self._contexts[0].invoke(self._function, arguments, results)
                self._check_files()  # a file that changed during the call may have affected its results
        except ProgramError:
            raise
        except Exception as error:
            raise ProgramError(f"failed while running: {reason_of(error)}", where=self.entry) from error

    def _check_files(self) -> None:
        for file in self._mapped:
            file.check()

    def _push(self, arguments: Any, array: Array, *, is_scalar: bool) -> None:
        if is_scalar:
            push = arguments.push_float if np.issubdtype(array.dtype, np.floating) else arguments.push_int
            push(array.item())
            return
        arguments.push_ref(self.place(array))

    def place(self, array: Array) -> Any:
        """Returns a copy of an array where programs read it, as an IREE buffer view."""
        device = self._open_device
        return device.allocator.allocate_buffer_copy(
            memory_type=_DEVICE_LOCAL,
            allowed_usage=_ANY_USE,
            device=device,
            buffer=array,
            element_type=element_type(array.dtype),
        )

    def default(self, spec: TensorSpec) -> Any:
        """Returns the default of an input where programs read it."""
        return self.defaults.placed(spec, self.place)

    def borrow(self, capsule: Any) -> Any:
        """Returns a buffer view of a DLPack capsule's memory, which lives as long as the view.

        The memory must be the CPU's, contiguous, and aligned to 64 bytes.
        """
        return self._open_device.from_dlpack_capsule(capsule)

    def read(self, view: Any, spec: TensorSpec) -> Array:
        """Returns as an array what `place` or a call put into a buffer view."""
        return read_view(view, spec.numpy_dtype, self._open_device)

    def step(self, inputs: Sequence[Any], outputs: int) -> StepResults:
        """Runs the program on arrays and on buffers that `place` or an earlier step returned."""
        device = self._open_device
        arguments = runtime.VmVariantList(len(inputs))
        for index, value in enumerate(inputs):
            if isinstance(value, np.ndarray):
                is_scalar = self.signature is not None and self.signature.inputs[index].is_scalar
                self._push(arguments, value, is_scalar=is_scalar)
            else:
                arguments.push_ref(value)
        results = runtime.VmVariantList(outputs)
        self._invoke(arguments, results)
        return StepResults(results, device)


class StepResults:
    """Results of a call: arrays that the caller owns, or the buffers themselves."""

    def __init__(self, results: Any, device: Any) -> None:
        self._results, self._device = results, device

    def array(self, index: int, spec: TensorSpec) -> Array:
        return pull(self._results, index, spec, self._device)

    def buffer(self, index: int) -> Any:
        return self._results.get_variant(index).deref(runtime.HalBufferView)

    def lend(self, index: int, item_bytes: int) -> Any:
        """Returns a DLPack capsule of a result in CPU memory, as signed integers of the element's size.

        IREE's own element types do not say whether an integer has a sign, and DLPack lacks some of them.
        """
        view = self.buffer(index)
        drivers.has_lent = True
        plain = runtime.HalBufferView(view.get_buffer(), view.shape, integer_type(item_bytes))
        return self._device.create_dlpack_capsule(plain, _DLPACK_CPU, 0)


class BoundCall:
    """A program with its inputs in place; calling it runs the program and copies nothing."""

    def __init__(self, session: Session, arguments: Any, signature: Signature | None) -> None:
        self._session, self._arguments, self._signature = session, arguments, signature
        self._results = runtime.VmVariantList(0)
        release_at_exit(self)

    def release(self) -> None:
        """Releases the arguments and the results."""
        self._arguments = self._results = None

    def __repr__(self) -> str:
        return "<tilewright call of a program with its inputs in place: call it, then .outputs()>"

    def __call__(self) -> None:
        check_not_over(self._session.entry)
        # The last results are released first, so that the new ones reuse their memory.
        self._results = runtime.VmVariantList(len(self._signature.outputs) if self._signature else 1)
        self._session._invoke(self._arguments, self._results)

    def outputs(self) -> list[Array]:
        """Returns the results of the last call as arrays that the caller owns."""
        device = self._session._open_device
        specs = self._signature.outputs if self._signature else [None] * len(self._results)
        return [pull(self._results, i, specs[i], device) for i in range(len(self._results))]


@contextlib.contextmanager
def _without_preempting() -> Iterator[None]:
    """Keeps this thread, when it wakes, from taking the core of the worker that woke it.

    IREE's caller spins until that worker has returned from waking it. If the caller preempts the worker, it spins for a
    whole time slice of 3 to 5 ms; this was seen in a quarter of the calls where workers fill all cores.
    """
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        yield
        return
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _archive(file: HeldFile) -> Any:
    index = runtime.ParameterIndex()
    try:
        index.load_from_file_handle(runtime.FileHandle.wrap_memory(file.buffer), "irpa")
    except Exception as error:
        raise ProgramError(
            f"not a parameter archive, or a truncated one: {reason_of(error)}", where=str(file.path)
        ) from error
    return index
