"""Describes a GPU by the results of the GPU check: what a copy reaches there, what a launch costs, and how far the
predictions are off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

from tilewright.calibration.calibration import Calibration, cost
from tilewright.calibration.quantity import Quantity, check_agreement
from tilewright.errors import CalibrationError
from tilewright.records.targets import Target

_LEAST_KERNELS = 10
"""Kernels from which on an error can be told."""
_SHORT = 3
"""Launches that a short kernel is predicted to take at most; its launch is then a good part of its time."""
_MOST_ERROR = 0.9
"""Largest error that is written; predictions that are worse decide nothing."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that the check timed."""

    contracts: bool
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        return self.measured / self.predicted


@dataclass(frozen=True)
class Check:
    """The results of one run of `python -m benchmarks.gpu_check`."""

    file: str
    target: str
    """Name of the target that the kernels were compiled for."""
    gpu: str
    date: str
    copied: float
    """Bytes per second that a copy reads and writes."""
    l2_bytes: int
    memory_bytes: int
    multiprocessors: int
    kernels: tuple[Kernel, ...]

    @staticmethod
    def read(data: Any, *, file: str) -> Check:
        """Reads the JSON of a check. Raises `CalibrationError` if it is something else."""
        try:
            device = data["gpu"]
            return Check(
                file=file,
                target=str(data["bundle"]["target"]),
                gpu=str(device["gpu"]),
                date=str(data["date"])[:10],
                copied=device["copy_gb_per_s"] * 1e9,
                l2_bytes=int(device["l2_bytes"]),
                memory_bytes=int(device["memory_bytes"]),
                multiprocessors=int(device["multiprocessors"]),
                kernels=tuple(_kernels(data["workloads"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise CalibrationError(
                "these are no results of the GPU check",
                where=file,
                hint="docs/guide/gpu-check.md says how to make them",
            ) from None


def calibrate_gpu(checks: Sequence[Check], base: Target) -> Calibration:
    """Fits parameters of `base`, the target that the kernels were compiled for, to the results of checks of one GPU.

    The size of the device and the bandwidth of its memory are those that the checks measured. The errors of
    predictions, by which plans are compared, are those of their kernels. Raises `CalibrationError` for results of
    another target or of several GPUs, for copies that disagree by more than 20%, and for too few kernels.
    """
    first = checks[0]
    for check in checks:
        if check.target != base.name:
            raise CalibrationError(
                f"these are results of kernels for {check.target}, not for {base.name}",
                where=check.file,
                hint=f"give --target {check.target}",
            )
        if check.gpu != first.gpu:
            raise CalibrationError(f"these are results of {check.gpu}, not of {first.gpu}", where=check.file)
    kernels = [kernel for check in checks for kernel in check.kernels]
    if len(kernels) < _LEAST_KERNELS:
        raise CalibrationError(
            f"{len(kernels)} kernels with a measured time; at least {_LEAST_KERNELS} are needed",
            where=first.file,
        )
    copied = Quantity("DRAM bandwidth of a copy", "B/s", tuple(check.copied for check in checks))
    check_agreement([copied])
    quantities = [copied]
    if (launch := _launch(kernels, base)) is not None:
        quantities.append(Quantity("launch", "s", (launch,)))
    date = max(check.date for check in checks)
    origin = f"GPU check on {first.gpu}: {', '.join(check.file for check in checks)}"
    fields: dict[str, Any] = {
        "base": base.name,
        "name": f"{base.name}-calibrated",
        "cores": first.multiprocessors,
        "levels": [_level(level.name, first, copied.value) for level in base.levels],
        "launchSeconds": base.launch_seconds if launch is None else launch,
        "costs": list(_errors(kernels, origin, date)),
        "source": f"{origin}, {date}; otherwise {base.source}",
    }
    return Calibration(fields, tuple(quantities))


def pair_error(ratios: Sequence[float]) -> float:
    """Returns the error of comparisons: for half of all pairs of kernels, the measured times compare with the predicted
    ones within this part of the slower time. `ratios` are measured over predicted times."""
    pairs = [abs(math.log(a / b)) for a, b in combinations(ratios, 2)]
    return min(_MOST_ERROR, 1 - math.exp(-median(pairs)))


def _kernels(workloads: Any) -> Iterator[Kernel]:
    for workload in workloads:
        for kernel in workload.get("kernels") or []:
            predicted, measured = kernel.get("predicted_s"), kernel.get("measured_s")
            if predicted and measured:
                yield Kernel(kernel["name"].startswith("contract"), float(predicted), float(measured))


def _errors(kernels: Sequence[Kernel], origin: str, date: str) -> Iterator[dict[str, Any]]:
    yield cost("confidence.kernels", pair_error([kernel.ratio for kernel in kernels]), origin, date)
    contractions = [kernel.ratio for kernel in kernels if kernel.contracts]
    if len(contractions) >= _LEAST_KERNELS:
        yield cost("confidence.contractions", pair_error(contractions), origin, date)


def _launch(kernels: Sequence[Kernel], base: Target) -> float | None:
    """Returns the launch with which half of the short kernels take less than predicted; None if there are too few."""
    short = [kernel for kernel in kernels if kernel.predicted <= _SHORT * base.launch_seconds]
    if len(short) < _LEAST_KERNELS:
        return None
    launch = median(kernel.measured - (kernel.predicted - base.launch_seconds) for kernel in short)
    return launch if launch > 0 else None


def _level(name: str, check: Check, copied: float) -> dict[str, Any]:
    if name == "L2":
        return {"name": name, "capacityBytes": check.l2_bytes}
    if name == "DRAM":
        return {"name": name, "capacityBytes": check.memory_bytes, "bandwidth": copied}
    return {"name": name}
