"""Measured quantities, and whether their repetitions agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tilewright.errors import CalibrationError

MOST_DISAGREEMENT = 0.2
"""Largest difference between repetitions, as a share of their median, at which a measurement counts."""


@dataclass(frozen=True)
class Quantity:
    """Something that was measured several times."""

    name: str
    unit: str
    repetitions: tuple[float, ...]

    @property
    def value(self) -> float:
        return median(self.repetitions)

    @property
    def disagreement(self) -> float:
        """The difference between the largest and the smallest repetition, as a share of their median."""
        return (
            (max(self.repetitions) - min(self.repetitions)) / self.value if self.value > 0 else float("inf")
        )


def check_agreement(quantities: Sequence[Quantity]) -> None:
    """Raises `CalibrationError` if the repetitions of some quantity disagree too much to describe the machine."""
    worst = max(quantities, key=lambda quantity: quantity.disagreement)
    if worst.disagreement > MOST_DISAGREEMENT:
        raise CalibrationError(
            f"repetitions of the {worst.name} disagree by {worst.disagreement:.0%}, from "
            f"{spell(min(worst.repetitions), worst.unit)} to {spell(max(worst.repetitions), worst.unit)}; "
            f"a calibration allows {MOST_DISAGREEMENT:.0%}",
            hint="end other programs and calibrate again",
        )


def spell(value: float, unit: str) -> str:
    """Formats a value with a prefix of its unit, such as "38.1 GB/s"."""
    if unit == "s":
        return f"{value * 1e6:.3g} us"
    return f"{value / 1e9:.4g} G{unit}"
