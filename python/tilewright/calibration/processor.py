"""Describes this processor by measurements: what each level of its memory and its multiply-add units reach, and what a
launch and handing work to another thread cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tilewright.calibration.calibration import Calibration, cost
from tilewright.calibration.quantity import Quantity, check_agreement
from tilewright.records.targets import MemoryLevel, Target

REPETITIONS = 5
_WIDTHS = (16, 32, 64)
"""Bytes of the vector registers of x86-64."""
_SHARE = 0.5
"""Part of a cache that a measurement of it uses."""
_BEYOND = 4
"""Size of what is copied through memory, in sizes of the outermost cache."""
_LEAST_MEMORY, _MOST_MEMORY = 128 << 20, 1 << 30
"""Bounds on the bytes that all threads together copy through memory."""
_LEAST_SECONDS = 1e-8
"""Least cost that is written; below it, a difference of two measurements is noise."""


@dataclass(frozen=True)
class Cache:
    """A level of data caches."""

    level: int
    capacity_bytes: int
    """Bytes of one cache."""
    shared: bool
    """True if all cores share one."""


class Source(Protocol):
    """Where measurements come from. Each call measures once."""

    @property
    def processor(self) -> str:
        """Name of the processor."""

    @property
    def cores(self) -> int:
        """Number of cores that measurements use."""

    @property
    def caches(self) -> Sequence[Cache]:
        """Levels from the innermost outwards."""

    def multiply_adds(self, vector_bytes: int) -> float:
        """Returns the f32 operations per second of all cores in registers of that width; 0 if there are none."""

    def copies(self, bytes_of_core: int) -> float:
        """Returns the bytes per second that all cores read and write while each copies within that many bytes."""

    def launch(self, *, workgroups: bool) -> float:
        """Returns the seconds of a kernel with hardly any work, as one workgroup or as one for each core."""


def calibrate_processor(
    source: Source,
    base: Target,
    *,
    date: str,
    repetitions: int = REPETITIONS,
    progress: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Measures a processor, and describes it by the fields of `base` that were measured. The repetitions of all
    quantities are spread over the whole time, so that a busy minute does not pass for the machine.

    Raises `CalibrationError` if repetitions disagree by more than 20%.
    """
    measurements = _measurements(source, base)
    values: dict[str, list[float]] = {name: [] for name in measurements}
    for repetition in range(repetitions):
        for name, (_, measure) in measurements.items():
            progress(f"{name}, {repetition + 1} of {repetitions}")
            values[name].append(measure())
    quantities = {
        name: Quantity(name, unit, tuple(values[name]))
        for name, (unit, _) in measurements.items()
        if any(values[name])
    }
    check_agreement(list(quantities.values()))
    return Calibration(_fields(source, base, quantities, date=date), tuple(quantities.values()))


def _measurements(source: Source, base: Target) -> dict[str, tuple[str, Callable[[], float]]]:
    """Returns what is measured: by name, its unit and the function that measures it once."""
    found: dict[str, tuple[str, Callable[[], float]]] = {}
    for width in _WIDTHS:
        if width <= base.vector_bytes:
            found[_multiply_adds(width)] = ("FLOP/s", partial(source.multiply_adds, width))
    for level, capacity in _copied(source).items():
        found[f"{level} bandwidth"] = ("B/s", partial(source.copies, capacity))
    found["launch"] = ("s", partial(source.launch, workgroups=False))
    found["launch of all threads"] = ("s", partial(source.launch, workgroups=True))
    return found


def _multiply_adds(width: int) -> str:
    return f"multiply-adds, {width}-byte registers"


def _copied(source: Source) -> dict[str, int]:
    """Returns the bytes that a core copies within, by level, memory included."""
    copied = {
        f"L{cache.level}": int(_SHARE * cache.capacity_bytes / (source.cores if cache.shared else 1))
        for cache in source.caches
    }
    outermost = max((cache.capacity_bytes for cache in source.caches), default=0)
    memory = min(max(_BEYOND * outermost, _LEAST_MEMORY), max(_MOST_MEMORY, 2 * outermost))
    return copied | {"DRAM": memory // source.cores}


def _fields(source: Source, base: Target, quantities: dict[str, Quantity], *, date: str) -> dict[str, Any]:
    largest = max(quantity.disagreement for quantity in quantities.values())
    origin = f"tilewright calibrate on {source.processor}"
    flops = quantities[_multiply_adds(base.vector_bytes)].value
    launch = quantities["launch"].value
    handover = quantities["launch of all threads"].value - launch
    return {
        "base": base.name,
        "name": f"{base.name}-calibrated",
        "cores": source.cores,
        "levels": [_level(base, source, name, quantities) for name in _copied(source)],
        "flopsPerSecond": flops,
        # Special functions are polynomials, so their rate follows that of multiply-adds.
        "specialPerSecond": base.special_per_second * flops / base.flops_per_second,
        "launchSeconds": launch,
        "costs": [cost("cpu.workgroupSeconds", max(handover, _LEAST_SECONDS), origin, date)],
        "source": f"{origin}, {date}; repetitions agree within {largest:.0%}",
    }


def _level(base: Target, source: Source, name: str, quantities: dict[str, Quantity]) -> dict[str, Any]:
    known: MemoryLevel | None = next((level for level in base.levels if level.name == name), None)
    cache = next((cache for cache in source.caches if f"L{cache.level}" == name), None)
    level: dict[str, Any] = {"name": name}
    if (measured := quantities.get(f"{name} bandwidth")) is not None:
        level["bandwidth"] = measured.value
    if cache is not None:
        level["capacityBytes"] = cache.capacity_bytes
        level["units"] = 1 if cache.shared else source.cores
    if known is None:
        level["space"] = "global" if cache is None or cache.shared else "block"
    return level
