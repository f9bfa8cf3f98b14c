"""The result of a calibration: a target file, and how sure its numbers are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.calibration.quantity import Quantity, spell
from tilewright.errors import OutputError
from tilewright.records.targets import Target


@dataclass(frozen=True)
class Calibration:
    """Fields of a target over those of its "base", and the quantities that they come from."""

    fields: dict[str, Any]
    """The JSON form that `Target.from_json` takes."""
    quantities: tuple[Quantity, ...]

    def target(self) -> Target:
        return Target.from_json(self.fields)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the target file. Raises `OutputError`, and `TargetError` for a target that the compiler refuses."""
        self.target()
        try:
            Path(path).write_text(json.dumps(self.fields, indent=2) + "\n")
        except OSError as error:
            raise OutputError(f"cannot be written ({error.strerror})", where=os.fspath(path)) from None

    def describe(self) -> Iterator[str]:
        """Yields one line for each quantity: its value, and by how much its repetitions disagree."""
        for quantity in self.quantities:
            sure = f"repetitions within {quantity.disagreement:.1%}" if len(quantity.repetitions) > 1 else ""
            yield f"{quantity.name:<34} {spell(quantity.value, quantity.unit):>14}  {sure}".rstrip()


def cost(name: str, value: float, source: str, date: str) -> dict[str, Any]:
    """Returns a cost parameter in the form of a target file."""
    return {"name": name, "value": value, "source": source, "date": date}
