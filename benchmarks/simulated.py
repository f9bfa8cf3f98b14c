"""Runs workloads on a simulated GPU and reports their movement, safety, correctness and predicted time."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import tilewright
from tilewright.errors import TilewrightError
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.device import SECTOR_BYTES
from tilewright.simulator.programs import SimulatedRun, simulate_program
from tilewright.simulator.traffic import compulsory_bytes
from tilewright.system.lifeline import end_with_parent
from tilewright.system.workfolder import WorkFolder

from benchmarks.tables import table
from benchmarks.workloads import WORKLOADS


@dataclass(frozen=True, kw_only=True)
class SimulatedRow:
    """Results of one workload, summed over all its kernels; None if it did not run."""

    suite: str
    workload: str
    dtype: str
    system: str
    status: str
    """ok, wrong, incomplete (no kernel is ours, or random numbers replace a part), or failed."""
    reason: str = ""
    predicted_s: float | None = None
    """Seconds that the compiler predicts; nothing here is a measured time."""
    kernels: int | None = None
    bytes_moved: int | None = None
    """Bytes moved in sectors of 32 bytes, before any cache."""
    l2_traffic_bytes: float | None = None
    """The plan's prediction of `bytes_moved`; None if some kernel has none."""
    dram_bytes: int | None = None
    """Bytes that miss an L2 of the target's size."""
    planned_bytes: float | None = None
    """The plan's prediction of `dram_bytes`, which counts every tensor once per kernel that reads or writes it."""
    compulsory_bytes: int | None = None
    coalescing: float | None = None
    """Coalescing of the worst of reads and writes."""
    conflicts: int | None = None
    """Bank conflicts: passes over the banks of shared memory beyond the first of each access."""
    main_loop_conflicts: int | None = None
    """Bank conflicts in main loops of contractions."""
    spill_bytes: int | None = None
    """Registers according to ptxas; None if it is not available."""
    max_rel_error: float | None = None

    @property
    def moved(self) -> float | None:
        """Sector bytes over compulsory bytes."""
        if self.bytes_moved is None or not self.compulsory_bytes:
            return None
        return self.bytes_moved / self.compulsory_bytes

    @property
    def moved_to_planned(self) -> float | None:
        """Sector bytes over the L2 traffic that the plan predicts."""
        return (
            self.bytes_moved / self.l2_traffic_bytes if self.bytes_moved and self.l2_traffic_bytes else None
        )

    @property
    def dram_to_planned(self) -> float | None:
        """DRAM bytes over those that the plan predicts."""
        return self.dram_bytes / self.planned_bytes if self.dram_bytes and self.planned_bytes else None


def simulate_workloads(names: Sequence[tuple[str, str]], *, target: str, jobs: int) -> Iterator[SimulatedRow]:
    """Returns rows in order; `names` are workloads and dtypes."""
    with ProcessPoolExecutor(max_workers=jobs, initializer=end_with_parent) as pool:
        yield from pool.map(functools.partial(_simulate, target=target), names)


def _simulate(name: tuple[str, str], *, target: str) -> SimulatedRow:
    workload = WORKLOADS[name[0]].in_type(name[1])
    about: dict[str, Any] = {
        "suite": workload.suite,
        "workload": name[0],
        "dtype": name[1],
        "system": f"tilewright on {target}",
    }
    model = workload.build()
    inputs = random_inputs(model, 0)
    try:
        with WorkFolder("simulated") as folder:
            program = tilewright.compile(model, target, tuning=False, dump_dir=folder)
            run = simulate_program(program, folder, inputs)
    except TilewrightError as failure:
        return SimulatedRow(**about, status="failed", reason=failure.message)
    figures = _figures(program, run)
    if run.outputs is None:
        left = ", ".join(map(str, run.invented)) or "no kernels of ours"
        return SimulatedRow(**about, **figures, status="incomplete", reason=left)
    expected = float64_reference(model, inputs)
    size = compulsory_bytes(model, inputs, run.outputs)
    error = max(relative_error(y, y64) for y, y64 in zip(run.outputs, expected, strict=True))
    bound = model_tolerance(model)
    right = bool(error <= bound)
    return SimulatedRow(
        **about,
        **figures,
        compulsory_bytes=size,
        status="ok" if right else "wrong",
        reason="" if right else f"relative error {error:.1e} is above {bound:.0e}",
        max_rel_error=error if np.isfinite(error) else None,
    )


def _figures(program: tilewright.Program, run: SimulatedRun) -> dict[str, Any]:
    sectors = sum(
        kernel.global_reads.sectors + kernel.global_writes.sectors + kernel.global_atomics.sectors
        for kernel in run.kernels
    )
    resources = program.metadata.resources
    asked = [kernel.l2_traffic_bytes for kernel in program.kernels]
    return {
        "predicted_s": sum(kernel.predicted_seconds for kernel in program.kernels),
        "kernels": len(run.kernels),
        "bytes_moved": SECTOR_BYTES * sectors,
        "l2_traffic_bytes": sum(asked) if all(asked) else None,
        "planned_bytes": sum(kernel.predicted_bytes for kernel in program.kernels),
        "dram_bytes": sum(k.dram_bytes_read + k.dram_bytes_written for k in run.kernels),
        "coalescing": min(
            (min(kernel.global_reads.coalescing, kernel.global_writes.coalescing) for kernel in run.kernels),
            default=None,
        ),
        "conflicts": sum(kernel.conflicts for kernel in run.kernels),
        "main_loop_conflicts": sum(kernel.main_loop_conflicts for kernel in run.kernels),
        "spill_bytes": sum(kernel.spill_bytes for kernel in resources.values()) if resources else None,
    }


def to_json(rows: Sequence[SimulatedRow]) -> list[dict[str, Any]]:
    """Returns rows in the format of measured runs; times that only a GPU can measure are null."""
    return [
        {
            **asdict(row),
            "moved": row.moved,
            "moved_to_planned": row.moved_to_planned,
            "dram_to_planned": row.dram_to_planned,
            "median_s": None,
            "kernel_s": None,
        }
        for row in rows
    ]


def to_markdown(rows: Sequence[SimulatedRow], *, title: str, conditions: Sequence[str]) -> str:
    """Returns the results as a page."""
    header = [
        "workload",
        "status",
        "kernels",
        "moved",
        "to plan",
        "past L2",
        "to plan",
        "coalescing",
        "conflicts",
        "in main loops",
        "spills",
        "predicted, µs",
        "error",
    ]
    cells = [
        [
            f"{row.workload} {row.dtype}",
            row.status + (f": {row.reason}" if row.reason else ""),
            _shown(row.kernels, "{}"),
            _shown(row.moved, "{:.2f}"),
            _shown(row.moved_to_planned, "{:.2f}"),
            _shown(
                row.dram_bytes / row.compulsory_bytes if row.dram_bytes and row.compulsory_bytes else None,
                "{:.2f}",
            ),
            _shown(row.dram_to_planned, "{:.2f}"),
            _shown(row.coalescing, "{:.2f}"),
            _shown(row.conflicts, "{}"),
            _shown(row.main_loop_conflicts, "{}"),
            _shown(row.spill_bytes, "{}"),
            _shown(row.predicted_s * 1e6 if row.predicted_s is not None else None, "{:.1f}"),
            _shown(row.max_rel_error, "{:.1e}"),
        ]
        for row in rows
    ]
    notes = "\n".join(f"- {line}" for line in conditions)
    legend = (
        "moved, past L2: bytes in sectors, and bytes past the L2, over compulsory bytes; to plan: over the plan's "
        "predictions; in main loops: conflicts of accesses in loops that carry accumulators. No time here is measured."
    )
    return f"# {title}\n\n{notes}\n\n{legend}\n\n{table(header, cells)}\n"


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
