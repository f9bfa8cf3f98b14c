"""Times the kernels of a build on this machine's processor. They run as in programs of users, through the runtime
without IREE (`runtime.direct`)."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.errors import ProgramError
from tilewright.records.signature import Array
from tilewright.runtime.direct import make_program
from tilewright.runtime.host_arrays import aligned
from tilewright.runtime.launch_loops import FlowReader
from tilewright.runtime.launches import LaunchPlan
from tilewright.runtime.slots import assign_slots
from tilewright.system.linker import link_kernels
from tilewright.tuning.timer import LAUNCHES

BURST_SECONDS = 2e-3
"""Seconds of calls per burst, so that the clock's resolution and a single interrupt do not matter."""
_MOST_COPIES = 16
_PAGE, _SHIFT = 4096, 5 * 64


@dataclass(frozen=True)
class Operand:
    """A tensor that kernels read and do not make."""

    number: int
    """The tensor's number in the description of the launches."""
    argument: int
    """The argument of the function that it is, or -1 for a constant."""
    bytes: int


class Operands:
    """Memory for what kernels read. Builds of a function share it, so that all of them find the same data in the
    caches."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[int, int, int], Array] = {}
        self._turns = itertools.count()
        """Weights that must come from memory have several copies, which all builds use in turn."""

    def address(self, operand: Operand, copy: int) -> int:
        """Returns the address of a copy of an operand, which stays allocated."""
        key = (operand.argument, operand.bytes, copy)
        if key not in self._arrays:
            # Tensors start at different offsets within their pages, because loads wait for stores to addresses with the
            # same low bits. Pages that nothing has written would all be the same one.
            shift = len(self._arrays) * _SHIFT % _PAGE
            self._arrays[key] = aligned(np.full(operand.bytes + shift, 0, np.uint8))[shift:]
        return self._arrays[key].ctypes.data

    def turn(self) -> int:
        return next(self._turns)


def prepare(
    folder: Path, *, weights: Sequence[int], evicts_bytes: int, threads: int, operands: Operands
) -> Callable[[], float]:
    """Returns a function that runs the launches of a build for a burst and returns the seconds of one run.

    The arguments `weights` do not stay in `evicts_bytes` of cache. Raises `ProgramError` if the build cannot be loaded.
    """
    from tilewright import _runtime

    plan, given = read_build(json.loads((folder / LAUNCHES).read_text()))
    link_kernels(folder / "kernels.o", folder / "kernels.so")
    library = _runtime.Library.load((folder / "kernels.so").read_bytes())
    program = make_program(library, plan, assign_slots(plan, len(given)), constants=(), threads=threads)
    moving = [operand for operand in given if operand.argument in weights]
    size = sum(operand.bytes for operand in moving)
    copies = max(1, min(_MOST_COPIES, math.ceil(2 * evicts_bytes / size))) if size else 1
    inputs = [
        [operands.address(operand, copy if operand in moving else 0) for operand in given]
        for copy in range(copies)
    ]

    def run(repetitions: int) -> float:
        turns = [inputs[operands.turn() % copies] for _ in range(repetitions)]
        started = time.perf_counter()
        try:
            for addresses in turns:
                program.run_addresses(addresses, ())
        except RuntimeError as error:
            raise ProgramError(f"failed while running: {error}", where=str(folder)) from None
        return time.perf_counter() - started

    once = run(1)

    def burst() -> float:
        nonlocal once
        run(1)
        repetitions = max(1, math.ceil(BURST_SECONDS / max(once, 1e-7)))
        once = run(repetitions) / repetitions
        return once

    return burst


def read_build(flow: Mapping[str, Any]) -> tuple[LaunchPlan, tuple[Operand, ...]]:
    """Returns the launches of a build as a program without results, whose inputs are the operands: what its kernels
    make lies in its own memory."""
    reader = FlowReader(flow["tensors"], frozenset())
    reader.read(flow["launches"])
    read = sorted({number for step in reader.steps for number in step.tensors} - set(reader.made))
    tensors = {number: flow["tensors"][number] for number in read}
    operands = tuple(
        Operand(number, tensor.get("argument", -1), reader.bytes_of(number))
        for number, tensor in tensors.items()
    )
    plan = LaunchPlan(
        steps=tuple(reader.steps),
        arguments={str(operand.number): position for position, operand in enumerate(operands)},
        results=(),
        constants={},
        bytes={str(number): size for number, size in reader.made.items()},
        input_bytes=tuple(operand.bytes for operand in operands),
        output_bytes=(),
        local_bytes=reader.local_bytes,
        processor_bits=flow["processor_bits"],
    )
    return plan, operands
