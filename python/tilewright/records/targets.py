"""Targets: descriptions of machines for the compiler, as data.

target = Target.lookup("x86-64-avx512")
smaller = dataclasses.replace(target, block_bytes=65536)
program = tilewright.compile(model, target=smaller)
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from tilewright.errors import OutputError, TargetError
from tilewright.records.encoding import RecordError, from_json, to_json
from tilewright.records.kinds import MachineKind, kind_of_backend


@dataclass(frozen=True)
class MemoryLevel:
    """One level of the memory hierarchy."""

    name: str
    space: str
    """Memory space of the slices at this level: register, block, cluster, global or host."""
    capacity_bytes: int
    """Bytes of one unit; 0: unbounded."""
    bandwidth: float
    """Bytes per second of all units together."""
    transaction_bytes: int
    """Bytes of a cache line or sector."""
    units: int


@dataclass(frozen=True)
class GpuLimits:
    """Limits on the resident threads of a GPU, and the latencies that they hide; all are zero on a CPU."""

    warp_lanes: int = 0
    threads_per_block: int = 0
    threads_per_sm: int = 0
    blocks_per_sm: int = 0
    registers_per_sm: int = 0
    registers_per_thread: int = 0
    shared_bytes_per_sm: int = 0
    reserved_shared_bytes: int = 0
    """Bytes of shared memory that the system reserves in each block."""
    guaranteed_sms: int = 0
    """SMs of the smallest GPU that the target covers; a grid barrier relies on no more than these."""
    clock_hz: float = 0.0
    shared_cycles: float = 0.0
    """Latency in cycles of a load from shared memory; the next fields are those of other levels."""
    l2_cycles: float = 0.0
    dram_cycles: float = 0.0
    grid_barrier_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CostParameter:
    """A parameter of the cost models; docs/reference/costs.md lists them."""

    name: str
    """Such as "gpu.stepCycles"; the last of several with one name counts."""
    value: float
    unit: str = ""
    """Unit of the value, or "": the one that the list states."""
    source: str = "a target"
    """Document or measurement that the value is from."""
    date: str = ""
    """Date of the source, as YYYY-MM-DD."""


@dataclass(frozen=True, kw_only=True)
class MicroKernel:
    """A user-defined step of a contraction's register block: see docs/guide/micro-kernels.md.

    The step adds `depth` successive products to each lane of a vector of accumulators.
    """

    name: str
    """Letters, digits and underscores; plans write it as name-ROWSxVECTORS."""
    lhs: str
    """Element type of the left operand, which is broadcast to all lanes: f16, bf16, f32, f64, si8 or ui8."""
    rhs: str
    """Element type of the right operand, whose elements along N fill the lanes."""
    accumulator: str
    """Type of the accumulators: f32, f64 or i32."""
    vector_bytes: int
    """Bytes of the vector registers that it is written for; targets of other widths do not use it."""
    body: str
    """A `func.func` that takes the accumulators, the left operand (equal in all lanes) and the right one, and
    returns the accumulators."""
    depth: int = 1
    """Products that the step adds to each accumulator; they lie side by side in both operands: 1, 2 or 4."""
    features: tuple[str, ...] = ()
    """Features that the processor must have, in LLVM's spelling."""
    speed: float = 1.0
    """Multiply-adds in the time of one in f32. The fastest kernel is chosen; of equal ones, the last registered."""
    strict: bool = False
    """True if it adds each product separately with one rounding, so that strict numerics may use it."""
    has_offset: bool = False
    """True if it adds something even if the left operand is zero; this is subtracted at the end (integers
    only)."""
    block_rows: int = 0
    """M of the register block; 0: the compiler chooses it by arithmetic intensity."""
    block_vectors: int = 0


@dataclass(frozen=True)
class Target:
    """A machine. `source` says where the numbers come from; none of them was queried from a live device."""

    name: str
    backend: str
    triple: str
    cpu: str
    features: str
    levels: tuple[MemoryLevel, ...]
    """Memory levels, innermost first."""
    cores: int
    vector_bytes: int
    vector_registers: int
    launch_seconds: float
    barrier_seconds: float
    flops_per_second: float
    special_per_second: float
    """Exponentials, divisions and similar operations per second."""
    max_bindings: int
    block_bytes: int
    """Most bytes of memory that a workgroup may use for tiles."""
    source: str
    gpu: GpuLimits = GpuLimits()
    costs: tuple[CostParameter, ...] = ()
    """Parameters of the cost models; those that are missing have the values of the list."""
    micro_kernels: tuple[MicroKernel, ...] = ()
    """Registered micro kernels, which are preferred to the compiler's."""

    @property
    def kind(self) -> MachineKind:
        """Kind of the machine, which says what is done for it. Raises `TargetError` if only the compiler has it."""
        try:
            return kind_of_backend(self.backend)
        except ValueError as error:
            raise TargetError(str(error), where=f"target '{self.name}'") from None

    def __repr__(self) -> str:
        return f"<Target {self.name}: {self.backend}, {self.cpu}, {self.cores} cores>"

    @staticmethod
    def lookup(name_or_path: str | os.PathLike[str]) -> Target:
        """Returns a known target, "cpu" for this machine, or the target of a JSON file that overrides fields of its
        "base". Raises `TargetError`."""
        from tilewright.ir.native import native  # --help works without it

        text, problem = native.lookup_target(os.fspath(name_or_path))
        return _read(text, problem, name=os.fspath(name_or_path))

    @staticmethod
    def from_json(data: dict[str, Any]) -> Target:
        """Reads the JSON form; missing fields are taken from the target that the member "base" names."""
        from tilewright.ir.native import native

        text, problem = native.normalize_target(json.dumps(data), 0)
        return _read(text, problem, name=str(data.get("name", "?")))

    def with_cores(self, cores: int) -> Target:
        """Returns the same machine with another number of hardware threads and a proportional part of its rates."""
        from tilewright.ir.native import native

        text, problem = native.normalize_target(json.dumps(self.to_json()), cores)
        return _read(text, problem, name=self.name)

    def to_json(self) -> dict[str, Any]:
        return to_json(self)  # type: ignore[no-any-return]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON form, which `lookup`, `compile` and `tilewright-opt` read. Raises `OutputError`."""
        try:
            Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")
        except OSError as error:
            raise OutputError(f"cannot be written ({error.strerror})", where=os.fspath(path)) from None


_registered: list[MicroKernel] = []


def register_micro_kernel(kernel: MicroKernel) -> None:
    """Registers a micro kernel, for later compilations in this process, with every target that has its features.

    It replaces an earlier one of the same name. Raises `TargetError` for a kernel that is not a valid step.
    """
    if not math.isfinite(kernel.speed):  # JSON has no representation for it
        raise TargetError(f"micro kernel '{kernel.name}': speed: expected a positive number")
    from tilewright.ir.native import native

    _, problem = native.normalize_target(
        json.dumps({"base": "x86-64-v2", "microKernels": [to_json(kernel)]}), 0
    )
    if problem:
        raise TargetError(problem.removeprefix("microKernels[0]: "))
    unregister_micro_kernel(kernel.name)
    _registered.append(kernel)


def unregister_micro_kernel(name: str) -> None:
    """Removes the micro kernel that was registered by that name."""
    _registered[:] = [kernel for kernel in _registered if kernel.name != name]


def _with_registered(target: Target) -> Target:
    if not target.kind.takes_micro_kernels or not _registered:
        return target
    return replace(target, micro_kernels=(*target.micro_kernels, *_registered))


TargetChoice: TypeAlias = "str | os.PathLike[str] | Target | Sequence[str | os.PathLike[str] | Target]"
"""Target or targets of a compilation: one, or several as a sequence or as names separated by commas."""


def resolve_targets(choice: TargetChoice, *, threads: int) -> tuple[Target, ...]:
    """Returns the targets as data, widest first, with as many cores as the program will have threads. Raises
    `TargetError`.

    Of several GPUs, the first target holds what all of them can do, and planning uses it; each more capable GPU
    follows.
    """
    several = _split(choice)
    if len(several) > 1 and "cpu" in several:
        raise TargetError(
            "target 'cpu' is this machine as a whole and cannot be one of several",
            hint="name targets of the table; `tilewright targets` lists them",
        )
    targets = [one if isinstance(one, Target) else Target.lookup(one) for one in several]
    kinds = {target.backend for target in targets}
    if len(kinds) > 1:
        raise TargetError(
            f"targets {' and '.join(target.name for target in targets)} are not of the same kind",
            hint="compile separately for CPUs and for GPUs",
        )
    if targets[0].kind.has_capabilities:
        return resolve_gpus(targets)
    widest_first = sorted(targets, key=lambda t: (t.vector_bytes, len(t.features.split(","))), reverse=True)
    return tuple(_with_registered(t if t.cores == threads else t.with_cores(threads)) for t in widest_first)


def resolve_gpus(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Returns what all of the GPUs can do, and one target for every capability above the least, most capable first."""
    if len(targets) == 1:
        return (targets[0],)
    by_capability = {target.cpu: target for target in reversed(targets)}
    if len({target.name for target in targets}) < len(targets):
        raise TargetError(f"a target is given twice: {', '.join(target.name for target in targets)}")
    capabilities = sorted(by_capability, reverse=True)
    return (
        _common_gpu(targets, by_capability[capabilities[-1]]),
        *(by_capability[c] for c in capabilities[:-1]),
    )


def _common_gpu(targets: Sequence[Target], oldest: Target) -> Target:
    """Returns the first target, reduced to the limits of all and the instructions of the oldest."""
    first = targets[0]
    limits = {
        name: min(getattr(target.gpu, name) for target in targets)
        for name in (
            "threads_per_block",
            "threads_per_sm",
            "blocks_per_sm",
            "registers_per_sm",
            "registers_per_thread",
            "shared_bytes_per_sm",
            "guaranteed_sms",
        )
    }
    reserved = max(target.gpu.reserved_shared_bytes for target in targets)
    alike = [target.features.split(",") for target in targets if target.cpu == oldest.cpu]
    return replace(
        first,
        name=",".join(target.name for target in targets),
        cpu=oldest.cpu,
        features=",".join(
            one for one in oldest.features.split(",") if all(one in features for features in alike)
        ),
        max_bindings=min(target.max_bindings for target in targets),
        block_bytes=min(target.block_bytes for target in targets),
        gpu=replace(first.gpu, **limits, reserved_shared_bytes=reserved),
    )


def _split(choice: TargetChoice) -> list[str | os.PathLike[str] | Target]:
    if isinstance(choice, str):
        return list(choice.split(","))
    if isinstance(choice, os.PathLike | Target):
        return [choice]
    several = list(choice) if isinstance(choice, Iterable) else [choice]
    if not several:
        raise TargetError("no target given", hint="use 'cpu' for this machine")
    for one in several:
        if not isinstance(one, str | os.PathLike | Target):
            text = repr(one)
            raise TargetError(
                f"{text if len(text) < 100 else f'a {type(one).__name__}'} is no target",
                hint="give a name such as 'cpu', the path of a JSON file, or a Target (see `tilewright targets`); "
                "inputs of a module are example_inputs=",
            )
    return several


def known_targets() -> list[str]:
    """Returns the names that `Target.lookup` accepts, besides "cpu" and paths of JSON files."""
    from tilewright.ir.native import native

    return list(native.known_targets())


def _read(text: str, problem: str, *, name: str) -> Target:
    if problem:
        raise TargetError(problem)
    try:
        return from_json(Target, json.loads(text))
    except RecordError as error:
        raise TargetError(str(error), where=f"target '{name}'") from None
