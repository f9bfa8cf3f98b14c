"""`tilewright calibrate`, which writes the target file of a machine from measurements."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.cli.group import common, tell
from tilewright.errors import CalibrationError, TargetError

if TYPE_CHECKING:
    from tilewright.calibration.calibration import Calibration
    from tilewright.calibration.gpu import Check


@click.command()
@click.option(
    "--target", help="Known target whose other fields are kept; default: cpu, or that of the results."
)
@click.option(
    "--from",
    "results",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="RESULTS",
    help="Fit a GPU to results of the GPU check (JSON), instead of measuring this processor; may be repeated.",
)
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="Path of the target file; '-' is stdout (default)."
)
@common
def calibrate(target: str | None, results: tuple[Path, ...], output: str) -> None:
    """Measure this machine for the cost models, and write a target file for --target.

    End other programs before: a calibration whose repetitions disagree by more than 20% is refused.
    """
    calibration = _fitted(results, target) if results else _measured(target or "cpu")
    for line in calibration.describe():
        tell(line)
    if output == "-":
        click.echo(json.dumps(calibration.fields, indent=2))
        return
    calibration.save(output)
    tell(f"{output} is written: give it as --target")


def _measured(name: str) -> Calibration:
    from tilewright.calibration.machine import Machine
    from tilewright.calibration.processor import calibrate_processor
    from tilewright.records.targets import Target

    base = Target.lookup(_known(name))
    if not base.kind.in_process:
        raise TargetError(
            f"{name} is a GPU, and this command measures processors",
            hint="run the GPU check there, and give its results with --from",
        )
    today = datetime.date.today().isoformat()
    return calibrate_processor(Machine(base), base, date=today, progress=tell)


def _fitted(results: Sequence[Path], name: str | None) -> Calibration:
    from tilewright.calibration.gpu import calibrate_gpu
    from tilewright.records.targets import Target

    checks = [_check(file) for file in results]
    return calibrate_gpu(checks, Target.lookup(_known(name or checks[0].target)))


def _check(file: Path) -> Check:
    from tilewright.calibration.gpu import Check
    from tilewright.records.encoding import parse_json

    try:
        data = parse_json(file.read_text())
    except OSError as error:
        raise CalibrationError(f"cannot be read ({error.strerror})", where=str(file)) from None
    except ValueError as error:
        raise CalibrationError(f"not JSON: {error}", where=str(file)) from None
    return Check.read(data, file=file.name)


def _known(name: str) -> str:
    """Returns the name of a target that others can be based on."""
    from tilewright.records.targets import known_targets

    known = ["cpu", *known_targets()]
    if name not in known:
        raise TargetError(
            f"no target file can be based on '{name}'", hint=f"known targets: {', '.join(known)}"
        )
    return name
