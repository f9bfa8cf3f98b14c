"""Compares the bytes that fused chains move between caches with those of their operators, both as the compiler
builds them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import tilewright
from tilewright.records.targets import Target
from tilewright.runtime.kernels import Kernel, buffer
from tilewright.simulator.movement import Cache, Hierarchy, LevelMovement, trace, traced_build
from tilewright.system.lifeline import end_with_parent
from tilewright.system.workfolder import WorkFolder

from benchmarks.chain_models import CHAINS, Chain, ConvolutionChain

# Threads that kernels are planned for. The simulation runs all workgroups one after another on one core's caches.
_THREADS = 2


@dataclass(frozen=True, kw_only=True)
class ChainMovement:
    """Bytes moved past each cache level, reads and writes together."""

    name: str
    kernels: int
    """Number of kernels of the whole chain; 1 if it is fused."""
    operators: int
    fused: list[int]
    apart: list[int]
    predicted: list[float]
    """Bytes that the plan of the whole chain predicts; empty if some kernel is no chain of contractions."""

    @property
    def saved(self) -> list[float]:
        """Shares of the separate operators' movement that fusion saves."""
        return [1 - whole / alone for whole, alone in zip(self.fused, self.apart, strict=True)]


def caches_of(target: Target) -> list[Cache]:
    """Returns the caches of one core: its own and the shared ones."""
    return [
        Cache(capacity_bytes=level.capacity_bytes, line_bytes=level.transaction_bytes)
        for level in target.levels
        if level.capacity_bytes > 0
    ]


def chain_movement(
    *, jobs: int, target: str = "cpu", chains: Sequence[Chain | ConvolutionChain] = CHAINS
) -> list[ChainMovement]:
    with ProcessPoolExecutor(max_workers=jobs, initializer=end_with_parent) as pool:
        return list(pool.map(partial(measure_chain, target=target), chains))


def measure_chain(chain: Chain | ConvolutionChain, *, target: str = "cpu") -> ChainMovement:
    caches = caches_of(Target.lookup(target))
    whole, predicted = traced(chain.whole(), target)
    operators = [traced(op, target)[0] for op in chain.operators()]
    apart = [kernel for kernels in operators for kernel in kernels]
    return ChainMovement(
        name=chain.name,
        kernels=len(whole),
        operators=len(operators),
        fused=[level.bytes for level in simulate_in_order(whole, caches)],
        apart=[level.bytes for level in simulate_in_order(apart, caches)],
        predicted=predicted,
    )


def traced(model: object, target: str) -> tuple[list[Kernel], list[float]]:
    """Returns the traced kernels of a model, all of which must be ours, and the movement that its plan predicts."""
    with WorkFolder("movement") as folder:
        dump = folder
        program = tilewright.compile(model, target, threads=_THREADS, dump_dir=dump, tuning=False)  # type: ignore[arg-type]
        if any(op.is_dispatch for op in program.metadata.report.left_to_iree):
            raise RuntimeError("an operator of a chain is left to IREE; its movement is not seen")
        levels = [part.movement for kernel in program.kernels for part in kernel.groups]
        predicted = [sum(level.bytes for level in of) for of in zip(*levels, strict=False)]
        return traced_build(dump), predicted


def simulate_in_order(kernels: Sequence[Kernel], caches: Sequence[Cache]) -> list[LevelMovement]:
    """Runs kernels one after another; each reads what the previous one wrote, which is recognised by its size."""
    hierarchy = Hierarchy(caches)
    kept = []  # keeps buffers alive, so that no two tensors share an address
    written: dict[int, int] = {}
    for kernel in kernels:
        addresses = []
        inputs = len(kernel.binding_bytes) - kernel.outputs
        for place, size in enumerate(kernel.binding_bytes):
            storage, address = buffer(size)
            kept.append(storage)
            addresses.append(written.pop(size, address) if place < inputs else address)
        trace(kernel, addresses, hierarchy)
        written |= dict(zip(kernel.binding_bytes[inputs:], addresses[inputs:], strict=True))
    return hierarchy.movement()
