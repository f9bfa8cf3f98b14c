"""The simulated device: runs a GPU kernel at the NVVM dialect on the CPU, counts what it does, and finds its bugs.

    report = tilewright.simulate(text, kernel="scale", grid=(8,), arrays=[x, out], target="cuda:h200", empty=[1])
    report.check()  # raises if the kernel has a bug
    print(report.global_reads.sectors, report.dram_bytes_read)

docs/guide/simulator.md says what each count is and what is found.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import InputError, SimulationError, TargetError
from tilewright.ir.native import native
from tilewright.records.encoding import from_json, to_json
from tilewright.records.targets import Target

if TYPE_CHECKING:
    import os

    from tilewright.records.signature import Array

SECTOR_BYTES = 32
RESERVED_BYTES = 4096
"""Bytes at the beginning of a device's memory that are reserved for module variables."""
_MEMORY_BYTES = 1 << 32
"""Bytes that kernels sharing an L2 may use; the simulated L2 tracks every sector of them."""


@dataclass(frozen=True)
class AccessCounts:
    """Counts of memory accesses by warps."""

    requests: int
    """Number of warp accesses."""
    bytes: int
    """Bytes that the threads requested."""
    sectors: int
    """Sectors of 32 bytes that the warp accesses touched; global memory only."""
    ideal_sectors: int
    """Sectors that would be touched if the same bytes were contiguous."""
    conflicts: int
    """Passes over the banks beyond the first of each access; shared memory only."""

    @property
    def coalescing(self) -> float:
        """Ideal sectors divided by sectors: 1 if every fetched byte was requested."""
        return self.ideal_sectors / self.sectors if self.sectors else 1.0


@dataclass(frozen=True)
class InstructionCounts:
    """Counts of warp instructions, by class. A vector op counts once per element, a memory access once."""

    integer: int
    floating: int
    special: int
    """Divisions, roots, exponentials and similar functions."""
    convert: int
    tensor: int
    """Small matrix products (`mma`)."""
    global_memory: int
    shared_memory: int
    local_memory: int
    shuffle: int
    barrier: int
    control: int


@dataclass(frozen=True)
class SiteReport:
    """One memory access in the code, with its counts."""

    operation: str
    location: str
    space: str
    access: str
    """"load", "store" or "atomic"."""
    is_in_main_loop: bool
    """True if the access is in a loop that carries accumulators, which is a main loop of a contraction."""
    counts: AccessCounts


@dataclass(frozen=True)
class BindingReport:
    """Traffic of one global buffer."""

    sectors_read: int
    sectors_written: int
    bytes_never_written: int
    """Bytes that were never written of a buffer that was given as empty."""


@dataclass(frozen=True)
class Fault:
    """A bug that ended the kernel."""

    kind: str
    """out-of-bounds, misaligned, never-written, barrier, race, trap or endless."""
    message: str
    operation: str
    location: str
    other_location: str
    """Location of the other access of a race, or of the other barrier."""

    def __str__(self) -> str:
        other = f" (the other: {self.other_location})" if self.other_location else ""
        at = " at ".join(filter(None, [self.operation, self.location]))
        return f"{self.kind}: {at}: {self.message}{other}"


@dataclass(frozen=True)
class SimulationReport:
    """Counts and faults of one kernel on the simulated device."""

    kernel: str
    device: str
    blocks: int
    threads_per_block: int
    shared_bytes_per_block: int
    warp_instructions: int
    thread_instructions: int
    instructions: InstructionCounts
    block_visits: int
    """Number of basic blocks that warps executed."""
    divergent_block_visits: int
    """Number of those that some lanes of the warp did not reach."""
    active_lanes: float
    """Share of active lanes over all instructions of warps."""
    global_reads: AccessCounts
    global_writes: AccessCounts
    global_atomics: AccessCounts
    shared_reads: AccessCounts
    shared_writes: AccessCounts
    dram_bytes_read: int
    """Bytes read from DRAM, which are those that miss the L2."""
    dram_bytes_written: int
    """Bytes of which this kernel was the last writer; if it shares an L2, they count only when the L2 is written
    back."""
    warp_barriers: int
    block_barriers: int
    cluster_barriers: int
    grid_barriers: int
    shuffles: int
    """Shuffles, votes and reductions of warps."""
    sites: tuple[SiteReport, ...]
    bindings: tuple[BindingReport, ...]
    faults: tuple[Fault, ...]
    """At most one fault, because a fault ends the kernel. The counts then cover the time before it."""
    compile_seconds: float
    run_seconds: float

    def check(self) -> None:
        """Raises `SimulationError` if the kernel has a fault."""
        for fault in self.faults:
            raise SimulationError(str(fault), where=f"kernel {self.kernel}")

    @property
    def conflicts(self) -> int:
        """Bank conflicts of all accesses to shared memory."""
        return self.shared_reads.conflicts + self.shared_writes.conflicts

    @property
    def main_loop_conflicts(self) -> int:
        """Bank conflicts in main loops of contractions."""
        return sum(site.counts.conflicts for site in self.sites if site.is_in_main_loop)

    def to_json(self) -> dict[str, Any]:
        return to_json(self)  # type: ignore[no-any-return]

    def summary(self) -> str:
        """Returns the report as text, with one line per figure."""
        moved = self.global_reads.sectors + self.global_writes.sectors + self.global_atomics.sectors
        lines = [
            f"{self.kernel} on {self.device}: {self.blocks} blocks of {self.threads_per_block} threads, "
            f"{self.shared_bytes_per_block} bytes of shared memory",
            f"global: {_counts(self.global_reads)} read; {_counts(self.global_writes)} written; "
            f"{moved * SECTOR_BYTES} bytes in sectors",
            f"past the L2: {self.dram_bytes_read} bytes read, {self.dram_bytes_written} written",
            f"shared: {self.shared_reads.bytes} bytes read, {self.shared_writes.bytes} written, "
            f"{self.conflicts} bank conflicts, {self.main_loop_conflicts} of them in loops that carry accumulators",
            f"barriers: {self.warp_barriers} of warps, {self.block_barriers} of blocks, "
            f"{self.cluster_barriers} of clusters, {self.grid_barriers} of the grid; {self.shuffles} shuffles",
            f"instructions: {self.warp_instructions} of warps, {self.active_lanes:.0%} of lanes active",
            *(str(fault) for fault in self.faults),
        ]
        return "\n".join(lines)


def _counts(counts: AccessCounts) -> str:
    return f"{counts.bytes} bytes ({counts.coalescing:.0%} coalesced)"


class L2:
    """The L2 of a GPU that runs kernels in sequence, each of which finds what earlier ones left there."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cache = native.DeviceCache(_l2_bytes(target))

    def write_back(self, reports: Sequence[SimulationReport]) -> list[SimulationReport]:
        """Writes the L2 back and returns the reports of all its kernels, in order, with these writes counted."""
        self.cache.flush()
        if len(reports) != len(self.cache.traffic()):
            raise InputError(
                f"{len(reports)} reports of {len(self.cache.traffic())} kernels that used the L2"
            )
        return [
            dataclasses.replace(report, dram_bytes_read=read, dram_bytes_written=written)
            for report, (read, written) in zip(reports, self.cache.traffic(), strict=True)
        ]


def simulate(
    module_text: str,
    kernel: str = "",
    grid: Sequence[int] = (1,),
    arrays: Sequence[Array] = (),
    constants: Sequence[int] = (),
    target: str | os.PathLike[str] | Target = "cuda:h200",
    *,
    empty: Collection[int] = (),
    block: Sequence[int] = (),
    dynamic_shared_bytes: int = 0,
    max_instructions: int = 200_000_000,
    max_seconds: float = 120.0,
    host_threads: int = 0,
    l2: L2 | None = None,
    addresses: Sequence[int] = (),
) -> SimulationReport:
    """Runs a kernel on the simulated device; `arrays` are its buffers, which the kernel changes.

    `module_text` is MLIR with the kernel as an `llvm.func` of the dialects llvm and nvvm; `kernel` may be left out if
    there is only one. The arrays at the positions in `empty` count as never written. `block` defaults to
    `nvvm.maxntid`. The kernel is ended after `max_instructions` of one thread, or `max_seconds` of processor time of
    one host thread. If the report has a fault, the arrays keep their original content.

    Raises `InputError` for arguments that do not fit, `TargetError` if the target is no GPU, and `SimulationError` if
    the module cannot be simulated.

    Kernels that share an `l2` give the `addresses` of their arrays on the device, which are multiples of 32 bytes from
    4096 to 4 GiB. Data that a kernel wrote and that is still in the L2 counts as written when the L2 is written back.
    """
    machine = target if isinstance(target, Target) else Target.lookup(target)
    if not machine.kind.is_simulated:
        raise TargetError(f"target {machine.name} is not a GPU", hint="give a known GPU, such as cuda:h200")
    if (l2 or addresses) and len(addresses) != len(arrays):
        raise InputError(
            f"{len(addresses)} addresses for {len(arrays)} arrays",
            hint="kernels that share an L2 have one each",
        )
    if l2 and l2.target.name != machine.name:
        raise InputError(f"an L2 of {l2.target.name} for a kernel on {machine.name}", hint="make another one")
    for index in empty:
        if not 0 <= index < len(arrays):
            raise InputError(f"empty names array {index}, of {len(arrays)}")
    text, problem = native.simulate(
        module_text,
        kernel,
        _size("grid", grid, fill=1),
        _size("block", block, fill=1 if block else 0),
        [
            _buffer(index, array, empty=index in empty, address=address)
            for index, (array, address) in enumerate(zip(arrays, _addresses(addresses, arrays), strict=True))
        ],
        [_constant(constant) for constant in constants],
        dynamic_shared_bytes,
        _device(machine),
        max_instructions,
        max_seconds,
        host_threads,
        l2.cache if l2 else None,
    )
    if problem:
        raise SimulationError(problem)
    return from_json(SimulationReport, json.loads(text))


def _l2_bytes(target: Target) -> int:
    return {level.name: level.capacity_bytes for level in target.levels}.get("L2", 0)


def _device(target: Target) -> tuple[str, int, int, int]:
    return target.name, _l2_bytes(target), target.block_bytes, target.cores


def _addresses(addresses: Sequence[int], arrays: Sequence[Array]) -> Sequence[int]:
    anywhere = -1
    if not addresses:
        return [anywhere] * len(arrays)
    for index, (address, array) in enumerate(zip(addresses, arrays, strict=True)):
        if address % SECTOR_BYTES or not RESERVED_BYTES <= address <= _MEMORY_BYTES - array.nbytes:
            raise InputError(
                f"array {index} cannot lie at {address}: addresses are multiples of {SECTOR_BYTES} from "
                f"{RESERVED_BYTES} to {_MEMORY_BYTES} less its size"
            )
    return addresses


def _size(what: str, size: Sequence[int], *, fill: int) -> tuple[int, int, int]:
    if len(size) > 3 or any(not 0 < extent < 1 << 31 for extent in size):
        raise InputError(f"{what} {tuple(size)} is not of one to three positive sizes")
    x, y, z = [*size, *[fill] * (3 - len(size))]
    return x, y, z


def _constant(value: int) -> int:
    if not -(1 << 31) <= value < 1 << 31:
        raise InputError(
            f"constant {value} does not fit 32 bits", hint="split it into the parts that the kernel expects"
        )
    return int(value)


def _buffer(index: int, array: Array, *, empty: bool, address: int) -> tuple[int, int, bool, int]:
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous or not array.flags.writeable:
        raise InputError(f"array {index} is not a writable, contiguous numpy array", hint="pass a copy of it")
    return array.ctypes.data, array.nbytes, empty, address
