"""`tilewright doctor` and `tilewright targets`: this machine's installation, and the targets that the compiler
knows."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tilewright.cli.group import common, json_flag, read_standard_input
from tilewright.errors import TargetError, TilewrightError

if TYPE_CHECKING:
    from tilewright.records.targets import Target


@click.command()
@json_flag
@common
def doctor(as_json: bool) -> None:
    """Check the installation."""
    from tilewright.cli.doctor import examine

    checks = examine()
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks], indent=2))
    for check in () if as_json else checks:
        mark = {True: "ok", False: "FAILED", None: "-"}[check.ok]
        click.echo(f"{mark:<7} {check.name}: {check.finding}")
    if any(check.ok is False for check in checks):
        raise TilewrightError("the installation does not work", hint="see the FAILED lines")


@click.command()
@click.argument("name", required=False)
@json_flag
@common
def targets(name: str | None, as_json: bool) -> None:
    """List the known targets, or print one as JSON (NAME: a target, 'cpu', or a JSON file; '-' is stdin)."""
    from tilewright.records.targets import Target, known_targets

    if name is not None:
        found = _from_standard_input() if name == "-" else Target.lookup(name)
        click.echo(json.dumps(found.to_json(), indent=2))
        return
    if as_json:
        every = [Target.lookup(known).to_json() for known in ["cpu", *known_targets()]]
        click.echo(json.dumps(every, indent=2))
        return
    for known in ["cpu", *known_targets()]:
        target = Target.lookup(known)
        levels = ", ".join(f"{level.name} {_size(level.capacity_bytes)}" for level in target.levels)
        click.echo(f"{known:<16} {target.backend}, {target.cores} cores, {levels}")


def _from_standard_input() -> Target:
    from tilewright.records.targets import Target

    try:
        return Target.from_json(json.loads(read_standard_input("the target")))
    except (ValueError, RecursionError) as error:
        raise TargetError(f"not JSON: {error}", where="-") from None


def _size(capacity: int) -> str:
    if capacity == 0:
        return "unbounded"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if capacity >= size:
            return f"{capacity / size:g} {unit}"
    return f"{capacity} B"
