"""Runs a compiled module in IREE's runtime: picks the driver, loads weights, moves arrays in and out.

One thread means IREE's `local-sync` driver, which runs everything on the calling thread: 15 us for a call
instead of 105, and 0.25 us for a dispatch instead of 1.1 to 1.5. More threads mean `local-task`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import re
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from iree import runtime
from iree.runtime import _binding

from tilewright.errors import ProgramError
from tilewright.iree.versions import check_iree
from tilewright.records.signature import (
    DEFAULTS_SCOPE,
    Array,
    Signature,
    TensorSpec,
    signature_from_declaration,
)
from tilewright.runtime.at_exit import check_not_over, ended, release_at_exit
from tilewright.runtime.defaults import DefaultInputs
from tilewright.runtime.held import HeldFile, hold_module, hold_weights
from tilewright.system.cores import fills_machine

# Bytes of a workgroup's memory that our kernels may use. IREE gives a worker of `local-task` as much as its core's L2
# cache, or its L1 if the L2 size cannot be read.
WORKER_MEMORY_BYTES = 2 << 20

# Number of buffers that the results and transients of a call reuse from earlier calls. Fresh memory costs a page fault
# per 4 KiB, five times what a kernel takes to fill it.
_ALLOCATOR = "caching:device_local=*;*;64"

# Bytes that are kept allocated in a CUDA device's pool, so that the pool stays mapped.
_LITTLE_BYTES = 4096

# Constants of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_INT = 2**31 - 1

# Flags that every call requests, as IREE's integers.
_DEVICE_LOCAL = int(runtime.MemoryType.DEVICE_LOCAL)
_HOST_VISIBLE = int(runtime.MemoryType.HOST_VISIBLE)
_ANY_USE = int(runtime.BufferUsage.DEFAULT)

_DEFAULT_TOPOLOGY = (
    "--task_topology_nodes=current",
    "--task_topology_max_group_count=64",
    "--task_topology_group_count=0",
)

_CUDA = 0
"""Key of the CUDA device, in place of a number of threads."""

_DLPACK_CPU = 1
"""DLPack's number for CPU memory."""

_LONGEST_WAIT_SECONDS = 1.0
"""Seconds to wait for a daemon thread's call when the interpreter ends; it will not finish in any case."""


class _Drivers:
    """The drivers of this process, each with a device, by number of threads or `_CUDA`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: dict[int, tuple[Any, Any]] = {}
        self.has_lent = False
        """True if memory of a device may be in use by tensors, which can outlive everything that Python releases."""
        release_at_exit(self)

    def release(self) -> None:
        if self.has_lent:
            # Memory is returned to its device, so the devices stay until the process has ended.
            _binding.disable_leak_checker()
            for made in self.made.values():
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        self.made.clear()


_drivers = _Drivers()


@dataclass(frozen=True)
class Interface:
    """Interface of a module, read without running it."""

    entry: str
    signature: Signature | None
    """Signature as the module declares it; modules that came from torch or ONNX do not."""


def read_interface(module: Path | HeldFile, *, entry: str | None) -> Interface:
    """Reads the interface of a module, which may be for another machine."""
    check_iree("iree-base-runtime")
    file = hold_module(module)
    return _interface(_load_module(runtime.VmInstance(), file), entry, file.path)


def missing_features(features: str) -> list[str]:
    """Returns those of the LLVM features ("+avx2,+fma") that this machine lacks; a program that uses them would
    trap."""
    present = _processor_flags()
    if present is None:
        return []
    needed = [
        f[1:] for f in features.split(",") if re.match(r"\+(avx(?!10)|amx|fma|f16c|bmi|ssse3|sse4|popcnt)", f)
    ]
    return [f for f in needed if _plain(f) not in present]


@functools.cache
def _processor_flags() -> frozenset[str] | None:
    """Returns the processor's flags as Linux names them, without punctuation; None if they cannot be read."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), None)
    return frozenset(map(_plain, flags)) if flags else None


def _plain(feature: str) -> str:
    plain = re.sub(r"[-_.]", "", feature)
    return "bmi1" if plain == "bmi" else plain


class Session:
    """A loaded module, ready to be called. Calls from several threads take turns."""

    def __init__(
        self,
        module: Path | HeldFile,
        parameters: Mapping[str, Path | HeldFile],
        *,
        entry: str | None,
        threads: int,
        device: str = "local",
    ) -> None:
        check_iree("iree-base-runtime")
        check_not_over(entry or str(module))
        if device == "cuda":
            self._device = _cuda_device()
        else:
            _ask_for_amx()
            self._device = _device(threads)
        self._waiting = _without_preempting if threads > 1 else contextlib.nullcontext
        self._turn = threading.Lock()  # a context of IREE's VM runs one call at a time
        self._instance = runtime.VmInstance()
        file = hold_module(module)
        weights = {scope: hold_weights(held) for scope, held in parameters.items()}
        self._mapped = [held for held in weights.values() if held.is_mapped]
        self._check_files()
        vm_module = _load_module(self._instance, file)
        archives = {scope: _archive(held) for scope, held in weights.items()}
        providers = [archive.create_provider(scope=scope) for scope, archive in archives.items()]
        modules = [runtime.create_hal_module(self._instance, self._device), vm_module]
        if providers:
            modules.insert(0, runtime.create_io_parameters_module(self._instance, *providers))
        try:
            context = runtime.VmContext(self._instance, modules=modules)
        except Exception as error:
            hint = "a GPU older than the target refuses its kernels" if device == "cuda" else None
            raise ProgramError(
                f"cannot be loaded: {_reason(error)}", where=str(file.path), hint=hint
            ) from error
        self._check_files()  # initializers read weights
        interface = _interface(vm_module, entry, file.path)
        self.entry = interface.entry
        self.signature = interface.signature
        self._function = vm_module.lookup_function(self.entry)
        self.defaults = DefaultInputs(archives.get(DEFAULTS_SCOPE), self.place, where=self.entry)
        self._contexts = [context]  # a list, so that contexts are released before the device's pool buffer
        kept, give_back = (
            (_occupy_pool(self._device), _release) if device == "cuda" else (self._contexts, _give_back)
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
            arguments.push_ref(self.defaults.placed(spec))
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
            raise ProgramError(f"failed while running: {_reason(error)}", where=self.entry) from error

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
            element_type=_element_type(array.dtype),
        )

    def borrow(self, capsule: Any) -> Any:
        """Returns a buffer view of a DLPack capsule's memory, which lives as long as the view.

        The memory must be the CPU's, contiguous, and aligned to 64 bytes.
        """
        return self._open_device.from_dlpack_capsule(capsule)

    def read(self, view: Any, spec: TensorSpec) -> Array:
        """Returns as an array what `place` or a call put into a buffer view."""
        return _read(view, spec.numpy_dtype, self._open_device)

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
        return _pull(self._results, index, spec, self._device)

    def buffer(self, index: int) -> Any:
        return self._results.get_variant(index).deref(runtime.HalBufferView)

    def lend(self, index: int, item_bytes: int) -> Any:
        """Returns a DLPack capsule of a result in CPU memory, as signed integers of the element's size.

        IREE's own element types do not say whether an integer has a sign, and DLPack lacks some of them.
        """
        view = self.buffer(index)
        _drivers.has_lent = True
        plain = runtime.HalBufferView(view.get_buffer(), view.shape, _integer_type(item_bytes))
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

    def __call__(self) -> None:
        check_not_over(self._session.entry)
        # The last results are released first, so that the new ones reuse their memory.
        self._results = runtime.VmVariantList(len(self._signature.outputs) if self._signature else 1)
        self._session._invoke(self._arguments, self._results)

    def outputs(self) -> list[Array]:
        """Returns the results of the last call as arrays that the caller owns."""
        device = self._session._open_device
        specs = self._signature.outputs if self._signature else [None] * len(self._results)
        return [_pull(self._results, i, specs[i], device) for i in range(len(self._results))]


def _pull(results: Any, index: int, spec: TensorSpec | None, device: Any) -> Array:
    value = results.get_variant(index)
    if not isinstance(value, runtime.VmRef):
        return np.asarray(value, dtype=spec.numpy_dtype if spec else None)
    view = value.deref(runtime.HalBufferView)
    dtype = spec.numpy_dtype if spec else np.dtype(runtime.HalElementType.map_to_dtype(view.element_type))
    return _read(view, dtype, device)


def _read(view: Any, dtype: np.dtype[Any], device: Any) -> Array:
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
def _integer_type(item_bytes: int) -> Any:
    return _element_type(np.dtype(f"i{item_bytes}"))


@functools.cache
def _element_type(dtype: np.dtype[Any]) -> Any:
    return runtime.array_interop.map_dtype_to_element_type(dtype)


def _download(view: Any, dtype: np.dtype[Any], device: Any) -> Array:
    """Copies a buffer from GPU memory as plain integers, since IREE does not have all of numpy's types."""
    bits = np.dtype(f"u{dtype.itemsize}")
    plain = runtime.HalBufferView(
        view.get_buffer(), view.shape, runtime.array_interop.map_dtype_to_element_type(bits)
    )
    array = runtime.DeviceArray(device, plain, implicit_host_transfer=True).to_host()
    return np.ascontiguousarray(array).view(dtype).reshape(view.shape)


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


def _device(threads: int) -> Any:
    """Returns a device with a driver of its own for each number of threads, which IREE fixes when it makes a driver."""
    with _drivers.lock:
        if threads not in _drivers.made:
            _drivers.made[threads] = _make_driver(threads)
        return _drivers.made[threads][1]


def _cuda_device() -> Any:
    """Returns the first CUDA device, with one stream, because kernels with grid barriers need the device for
    themselves."""
    try:
        with _drivers.lock:
            if _CUDA not in _drivers.made:
                driver = _binding.create_hal_driver("cuda")
                _drivers.made[_CUDA] = driver, driver.create_default_device()
            return _drivers.made[_CUDA][1]
    except Exception as error:
        raise ProgramError(
            f"no CUDA device can be used: {_reason(error)}",
            hint="run it on a machine with an NVIDIA GPU and its driver",
        ) from error


def _make_driver(threads: int) -> tuple[Any, Any]:
    _keep_freed_memory()
    if threads == 1:
        driver = _binding.create_hal_driver("local-sync")
    else:
        # IREE takes these only as global flags; another driver in the process keeps its own values.
        runtime.flags.parse_flags(*_topology(threads), f"--task_worker_local_memory={WORKER_MEMORY_BYTES}")
        try:
            driver = _binding.create_hal_driver("local-task")
        finally:
            runtime.flags.parse_flags(*_DEFAULT_TOPOLOGY, "--task_worker_local_memory=0")
    return driver, driver.create_default_device(allocators=[_ALLOCATOR])


def _occupy_pool(device: Any) -> list[Any]:
    """Allocates a little of the pool for results and transients of calls; it must be released before the device.

    CUDA unmaps the free memory of a pool whenever the stream is waited for, and maps it again at the next call. On an
    H200, calls of a 12 us kernel took 131 to 139 us, but 48 to 56 us while something of the pool was in use.
    """
    semaphore = device.create_semaphore(0)
    kept = [device.queue_alloca(_LITTLE_BYTES, [], [(semaphore, 1)])]
    semaphore.wait(1)
    return kept


def _release(kept: list[Any], _device: Any) -> None:
    kept.clear()


def _give_back(contexts: list[Any], device: Any) -> None:
    """Returns the memory that a program's calls reused to the system."""
    contexts.clear()
    device.allocator.trim()
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def _keep_freed_memory() -> None:
    """Makes glibc keep large freed blocks while a program is loaded.

    The queues of IREE's `local-task` allocate transients, and results of IREE's own kernels, with malloc instead of the
    caching allocator; so does `local-sync` once programs of many sizes have filled its cache. malloc maps and unmaps
    blocks of more than 32 MB, so that every call touches fresh pages: a copy of 256 MB then takes 80 ms instead of 15.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return  # the user's own setting takes precedence
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_INT)
        mallopt(_M_TRIM_THRESHOLD, _LARGEST_INT)


def _topology(threads: int) -> tuple[str, ...]:
    """Returns one worker per core if the workers fill the machine; fewer workers are placed by the system, away from
    other processes."""
    if fills_machine(threads):
        return ("--task_topology_nodes=all", f"--task_topology_max_group_count={threads}")
    return (f"--task_topology_group_count={threads}",)


def _load_module(instance: Any, file: HeldFile) -> Any:
    try:
        return runtime.VmModule.wrap_buffer(instance, file.buffer)
    except Exception as error:
        raise ProgramError(
            f"not a compiled module, or a truncated one: {_reason(error)}",
            where=str(file.path),
            hint="compile it again",
        ) from error


def _archive(file: HeldFile) -> Any:
    index = runtime.ParameterIndex()
    try:
        index.load_from_file_handle(runtime.FileHandle.wrap_memory(file.buffer), "irpa")
    except Exception as error:
        raise ProgramError(
            f"not a parameter archive, or a truncated one: {_reason(error)}", where=str(file.path)
        ) from error
    return index


def _interface(module: Any, entry: str | None, path: Path) -> Interface:
    name = _choose_entry(module, entry, path)
    declaration = module.lookup_function(name).reflection.get("iree.abi.declaration")
    return Interface(name, signature_from_declaration(declaration) if declaration else None)


def _choose_entry(module: Any, wanted: str | None, path: Path) -> str:
    exported: list[str] = module.function_names
    names = [n for n in exported if not n.startswith("__") and not n.endswith("$async")]
    if wanted is not None:
        if wanted in names:
            return wanted
        raise ProgramError(f"no function '{wanted}'; it has: {', '.join(names) or 'none'}", where=str(path))
    if len(names) == 1:
        return names[0]
    if not names:
        raise ProgramError("the model has no public function", where=str(path), hint="make one public")
    raise ProgramError(
        f"several functions: {', '.join(names)}", where=str(path), hint="choose one with entry="
    )


def _reason(error: Exception) -> str:
    """Returns IREE's status on one line, without the position in IREE's source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]) or type(error).__name__
    _, mark, tail = text.partition(".c:")
    return tail.partition(": ")[2][:300] if mark and tail else text[:300]


@functools.cache
def _ask_for_amx() -> None:
    """Requests AMX permission from the Linux kernel where available; without it, AMX instructions trap."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return
    try:
        if "amx_tile" not in Path("/proc/cpuinfo").read_text():
            return
    except OSError:
        return
    system_call, request_permission, tile_data = 158, 0x1023, 18  # arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)
    ctypes.CDLL(None).syscall(system_call, request_permission, tile_data)
