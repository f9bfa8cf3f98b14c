"""Kinds of machines, by what is done for them: the code that asks does not know which kinds there are.

The compiler has a table of its own, passes/target/MachineKind.cpp. Here are the questions that Python asks.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MachineKind:
    """A kind of machines, which has a backend of the compiler."""

    backend: str
    """Name of the compiler's backend, which begins the names of its pipelines."""
    device: str
    """Name of the devices on which programs run, as they state it."""
    in_process: bool = False
    """True if kernels run on threads of the process that calls the program, so that the machine that compiles a program
    can be the one that runs it; false if they run on a device beside it."""
    assembles: bool = False
    """True if kernels are text in a file per target, from which an assembler makes images; false if they are an object
    that has the variants for all targets."""
    has_capabilities: bool = False
    """True if each machine can do all that older ones can. Of several targets, the first is then what all of them can
    do, and the others follow by capability; otherwise the last one has the features that all have."""
    has_grid_barriers: bool = False
    """True if workgroups of a kernel may wait for each other, which not all machines of a target may permit."""
    rounds_to_tf32: bool = False
    """True if numerics may round operands of products to tf32."""
    takes_micro_kernels: bool = False
    """True if users can register micro kernels."""
    is_simulated: bool = False
    """True if the simulator runs its kernels."""
    traps: bool = False
    """True if a division of an integer by zero ends the process, also where IREE divides values that nobody reads."""
    widens_convolutions: bool = False
    """True if IREE's kernels for it compute some convolutions of narrow floats wrongly, so that these are widened."""
    refuses_sliced_constants: bool = False
    """True if IREE cannot compile kernels for it that read slices of constants; these are then read from memory."""
    unmaps_memory: bool = False
    """True if the device unmaps the memory that calls reuse, unless something stays allocated beside it."""


CPU = MachineKind(backend="cpu", device="local", in_process=True, takes_micro_kernels=True, traps=True)

CUDA = MachineKind(
    backend="cuda",
    device="cuda",
    assembles=True,
    has_capabilities=True,
    has_grid_barriers=True,
    rounds_to_tf32=True,
    is_simulated=True,
    widens_convolutions=True,
    refuses_sliced_constants=True,
    unmaps_memory=True,
)

KINDS = (CPU, CUDA)


def kind_of_backend(backend: str) -> MachineKind:
    """Raises `ValueError` for a backend that only the compiler has."""
    return _named(backend, {kind.backend: kind for kind in KINDS}, "backend")


def kind_of_device(device: str) -> MachineKind:
    """Raises `ValueError` for an unknown device."""
    return _named(device, {kind.device: kind for kind in KINDS}, "device")


def _named(name: str, kinds: dict[str, MachineKind], what: str) -> MachineKind:
    if name not in kinds:
        raise ValueError(f"unknown {what} '{name}'; there are {', '.join(kinds)}")
    return kinds[name]
