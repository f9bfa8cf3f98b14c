"""Runs programs whose kernels are all ours on the CPU without IREE, with the code of its module: the same bits, and
calls that cost a few microseconds."""

from __future__ import annotations

import functools
import importlib.util
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.errors import ProgramError
from tilewright.records.signature import DEFAULTS_SCOPE, Array, Signature, TensorSpec, element_dtype
from tilewright.runtime.defaults import DefaultInputs
from tilewright.runtime.held import HeldFile
from tilewright.runtime.launch_loops import ALIGNMENT
from tilewright.runtime.launches import LaunchPlan, shape_of
from tilewright.runtime.processor import ask_for_amx, has_feature
from tilewright.runtime.session import Session
from tilewright.runtime.slots import assign_slots
from tilewright.runtime.stored import array_of, evaluate_recipe, held_parameters
from tilewright.runtime.tensors import constant_of, parameter_of
from tilewright.runtime.trace import Span

_ELF_LIBRARY = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0\x3e\0"
"""The first bytes of a library for x86-64."""


@functools.cache
def is_available() -> bool:
    """Returns True if this installation has the extension module that runs kernels; a bundle for other machines does
    not."""
    return importlib.util.find_spec("tilewright._runtime") is not None


class DirectSession:
    """A program that is ready to be called. Calls from several threads take turns."""

    def __init__(
        self,
        plan: LaunchPlan,
        module: HeldFile,
        weights: Mapping[str, HeldFile],
        signature: Signature,
        *,
        threads: int,
        entry: str,
    ) -> None:
        """Raises `ProgramError` if the module lacks a kernel, or a file lacks a weight."""
        from tilewright import _runtime

        ask_for_amx()
        self._entry = entry
        self._kernels = [step.kernel.removesuffix("_dispatch") or "copy" for step in plan.steps]
        self._mapped = [held for held in weights.values() if held.is_mapped]
        slotted = assign_slots(plan, len(signature.inputs))
        constants = Constants(plan, module, weights)
        self._constants = [_aligned(constants.get(number)) for number in slotted.constants]
        self._inputs = [(spec.numpy_dtype, shape_of(spec)) for spec in signature.inputs]
        self._outputs = [(spec.numpy_dtype, shape_of(spec)) for spec in signature.outputs]
        self._exports = [_plain(dtype) for dtype, _ in self._inputs]
        values = held_parameters(weights[DEFAULTS_SCOPE]) if DEFAULTS_SCOPE in weights else {}
        self.defaults = DefaultInputs(values, where=entry)
        self._last = [_aligned(self.defaults.array(spec)) for spec in signature.inputs if spec.has_default]
        try:
            self._program = _runtime.DirectProgram(
                find_library(module, plan)[1],
                launches=slotted.launches,
                loops=slotted.loops,
                input_bytes=plan.input_bytes,
                output_bytes=plan.output_bytes,
                constants=[array.ctypes.data for array in self._constants],
                offsets=slotted.offsets,
                own_bytes=slotted.own_bytes,
                local_bytes=plan.local_bytes,
                processor=_features(plan.processor_bits),
                threads=threads,
            )
        except RuntimeError as error:
            raise ProgramError(f"cannot be loaded: {error}", where=str(module.path)) from None

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs the program on arrays that the signature has accepted."""
        results = self._run(self._program.run, *self._lent(arrays))
        return [
            np.frombuffer(memory, dtype, math.prod(shape)).reshape(shape)
            for memory, (dtype, shape) in zip(results, self._outputs, strict=True)
        ]

    def checked(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns arrays that the signature has accepted where kernels can read them."""
        return [np.require(array, requirements=["C", "A"]) for array in arrays]

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Runs the program on inputs and outputs at these addresses; those of inputs must be
        aligned as their elements are, those of outputs multiples of 64."""
        self._run(self._program.run_addresses, inputs, outputs)

    def trace(self, arrays: Sequence[Array]) -> list[Span]:
        """Runs the program on arrays that the signature has accepted, and returns the time of each kernel on each
        thread that took part in it."""
        times = self._run(self._program.trace, *self._lent(arrays))
        return [
            Span(kernel, thread, start, end)
            for kernel, parts in zip(self._kernels, times, strict=True)
            for thread, (start, end) in enumerate(parts)
            if end > 0  # other threads have taken all workgroups
        ]

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self._check_files()
        try:
            results = function(*arguments)
        except RuntimeError as error:
            raise ProgramError(f"failed while running: {error}", where=self._entry) from None
        self._check_files()  # a file that changed during the call may have affected its results
        return results

    def _lent(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns arrays, and the defaults of those that are missing, as types that can lend their memory."""
        if missing := len(self._inputs) - len(arrays):
            arrays = [*arrays, *self._last[-missing:]]
        return [
            array if plain is None else array.view(plain)
            for array, plain in zip(arrays, self._exports, strict=True)
        ]

    def bind(self, arrays: Sequence[Array]) -> DirectCall:
        """Returns a call on copies of arrays that the signature has accepted."""
        return DirectCall(self, [_aligned(array.copy()) for array in arrays])

    def takes(self, arrays: Sequence[Any]) -> bool:
        """Returns True if these are the inputs, as contiguous arrays of their types and shapes."""
        return len(self._inputs) - len(self._last) <= len(arrays) <= len(self._inputs) and all(
            type(array) is np.ndarray
            and array.dtype == dtype
            and array.shape == shape
            and array.flags.c_contiguous
            and array.flags.aligned
            for array, (dtype, shape) in zip(arrays, self._inputs, strict=False)
        )

    def _check_files(self) -> None:
        for file in self._mapped:
            file.check()


class DirectCall:
    """A program with its inputs in place."""

    def __init__(self, session: DirectSession, arrays: Sequence[Array]) -> None:
        self._session, self._arrays = session, arrays
        self._results: list[Array] = []

    def __call__(self) -> None:
        self._results = []  # the memory of the last results can be used again
        self._results = self._session(self._arrays)

    def outputs(self) -> list[Array]:
        """Returns the results of the last call as arrays that the caller owns."""
        return list(self._results)

    def __repr__(self) -> str:
        return "<tilewright call of a program with its inputs in place: call it, then .outputs()>"


class Constants:
    """Weights, in their file's pages if they are aligned there, constants, and what IREE computes at load."""

    def __init__(self, plan: LaunchPlan, module: HeldFile, weights: Mapping[str, HeldFile]) -> None:
        self._described, self._weights = plan.constants, weights
        self._computed = _compute_at_load(plan, module, weights) if plan.at_load else []
        self._files = {scope: held_parameters(held) for scope, held in weights.items()}

    def get(self, number: int | str) -> Array:
        tensor = self._described[str(number)]
        shape, dtype = tuple(tensor["shape"]), element_dtype(tensor["element"])
        if recipe := tensor.get("recipe"):
            made = evaluate_recipe(recipe, lambda part: self.get(part["name"]).reshape(part["shape"]))
            return made.reshape(shape)
        if "at_load" in tensor:
            computed: Array = self._computed[tensor["at_load"]].reshape(shape)
            return computed
        parameter = parameter_of(tensor)
        if parameter is None:
            return constant_of(tensor, shape, dtype)
        scope, name = parameter
        if scope not in self._files:
            raise ProgramError("its weights are missing", where=f"scope '{scope}'")
        where = f"{self._weights[scope].path}, parameter '{name}'"
        return array_of(self._files[scope].get(name), shape, dtype, where=where)


def _compute_at_load(plan: LaunchPlan, module: HeldFile, weights: Mapping[str, HeldFile]) -> list[Array]:
    """Returns what the initializer of the module computes, which IREE runs when it loads the module."""
    outputs = [
        TensorSpec(f"{number}", element_dtype(tensor["element"]).name, tuple(tensor["shape"]))
        for number, tensor in enumerate(plan.computed)
    ]
    session = Session(module, weights, entry=plan.at_load, threads=1)
    try:
        return session([], Signature((), tuple(outputs)))
    finally:
        session.release()


def _aligned(array: Array) -> Array:
    """Returns a contiguous array at an aligned address: the array itself if it is one."""
    array = np.ascontiguousarray(array)
    if array.ctypes.data % ALIGNMENT == 0:
        return array
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    moved = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def find_library(module: HeldFile, plan: LaunchPlan) -> tuple[int, Any]:
    """Loads the library in the module that has the kernels, and returns its offset in bytes, too. Each executable has
    one, and IREE may have its own. Raises `ProgramError` if there is none."""
    from tilewright import _runtime

    kernel = next(step.kernel for step in plan.steps if step.kernel)
    start = -1
    while (start := module.buffer.find(_ELF_LIBRARY, start + 1)) >= 0:
        library = _runtime.Library.load(memoryview(module.buffer)[start:])
        if library.has(kernel):
            return start, library
    raise ProgramError(f"cannot be loaded: the module has no kernel {kernel}", where=str(module.path))


def _features(bits: Mapping[str, int]) -> int:
    return sum(1 << bit for feature, bit in bits.items() if has_feature(feature))


def _plain(dtype: np.dtype[Any]) -> str | None:
    """Returns the type as which an array can lend its memory, if it cannot as what it is (bfloat16)."""
    return None if re.fullmatch(r"[?bBhHiIlLqQefdFDgG]", dtype.char) else f"u{dtype.itemsize}"
