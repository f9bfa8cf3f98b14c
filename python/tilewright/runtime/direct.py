"""Runs programs whose kernels are all ours on the CPU without IREE, with the code of its module: the same bits, and
calls that cost a few microseconds."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.errors import ProgramError
from tilewright.records.signature import Array, Signature
from tilewright.runtime.constants import Constants
from tilewright.runtime.held import HeldFile
from tilewright.runtime.host_arrays import HostArrays, aligned
from tilewright.runtime.launches import LaunchPlan
from tilewright.runtime.processor import ask_for_amx, has_feature
from tilewright.runtime.slots import SlottedPlan, assign_slots
from tilewright.runtime.trace import Span

if TYPE_CHECKING:
    from tilewright._runtime import DirectProgram, InputForms, Library

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
        """Raises `ProgramError` if the module lacks a kernel, a file lacks a weight, or memory does not suffice."""
        self._entry = entry
        self._kernels = [step.kernel.removesuffix("_dispatch") or "copy" for step in plan.steps]
        self._mapped = [held for held in weights.values() if held.is_mapped]
        slotted = assign_slots(plan, len(signature.inputs))
        self._arrays = HostArrays(signature, weights, entry=entry)
        self.defaults = self._arrays.defaults
        self.checked = self._arrays.checked
        self._forms = make_forms(self._arrays)
        try:
            constants = Constants(plan, module, weights)
            self._constants = [aligned(constants.get(number)) for number in slotted.constants]
            library = find_library(module, plan)[1]
            self._program = make_program(library, plan, slotted, constants=self._constants, threads=threads)
        except RuntimeError as error:
            raise ProgramError(f"cannot be loaded: {error}", where=str(module.path)) from None
        except MemoryError as error:
            hint = "run it on a machine with more memory"
            raise ProgramError(f"too large for this machine: {error}", where=entry, hint=hint) from None

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs the program on arrays that the signature has accepted."""
        return self._arrays.results(self._run(self._program.run, *self._arrays.lent(arrays)))

    def run_fitting(self, arrays: Sequence[Any]) -> list[Array] | None:
        """Runs the program if these are its inputs, as contiguous arrays of their types and shapes; else returns
        None."""
        if self._forms is None:
            return self(arrays) if self._arrays.takes(arrays) else None
        if self._mapped:
            memories = self._run(self._program.run_lent, self._forms, *arrays)
        else:
            try:
                memories = self._program.run_lent(self._forms, *arrays)
            except RuntimeError as error:
                raise self._failed(error) from None
        return None if memories is None else self._arrays.results(memories)

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Runs the program on inputs and outputs at these addresses; those of inputs must be
        aligned as their elements are, those of outputs multiples of 64."""
        self._run(self._program.run_addresses, inputs, outputs)

    def trace(self, arrays: Sequence[Array]) -> list[Span]:
        """Runs the program on arrays that the signature has accepted, and returns the time of each kernel on each
        thread that took part in it."""
        times = self._run(self._program.trace, *self._arrays.lent(arrays))
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
            raise self._failed(error) from None
        self._check_files()  # a file that changed during the call may have affected its results
        return results

    def _failed(self, error: RuntimeError) -> ProgramError:
        return ProgramError(f"failed while running: {error}", where=self._entry)

    def bind(self, arrays: Sequence[Array]) -> DirectCall:
        """Returns a call on copies of arrays that the signature has accepted."""
        return DirectCall(self, [aligned(array.copy()) for array in arrays])

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


def make_forms(arrays: HostArrays) -> InputForms | None:
    """Returns the forms of inputs for `DirectProgram.run_lent`; None if there is a type that it does not know."""
    from tilewright import _runtime

    forms = arrays.forms()
    return None if forms is None else _runtime.InputForms(forms)


def make_program(
    library: Library, plan: LaunchPlan, slotted: SlottedPlan, *, constants: Sequence[Array], threads: int
) -> DirectProgram:
    """Returns the launches of a program with the kernels of a library, ready to run. Raises `RuntimeError` if it lacks
    one. The constants are those of `slotted`, and stay allocated as long as the program."""
    from tilewright import _runtime

    ask_for_amx()
    return _runtime.DirectProgram(
        library,
        launches=slotted.launches,
        loops=slotted.loops,
        input_bytes=plan.input_bytes,
        output_bytes=plan.output_bytes,
        constants=[array.ctypes.data for array in constants],
        offsets=slotted.offsets,
        own_bytes=slotted.own_bytes,
        local_bytes=plan.local_bytes,
        processor=_features(plan.processor_bits),
        threads=threads,
    )


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
