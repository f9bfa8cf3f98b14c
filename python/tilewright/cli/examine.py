"""`tilewright doctor` and `tilewright targets`: what this machine has, and what the compiler knows of others."""

from __future__ import annotations

import json

import click

from tilewright.cli.group import common
from tilewright.errors import TilewrightError


@click.command()
@common
def doctor() -> None:
    """Check the installation."""
    from tilewright.cli.doctor import examine

    checks = examine()
    for check in checks:
        mark = {True: "ok", False: "FAILED", None: "-"}[check.ok]
        click.echo(f"{mark:<7} {check.name}: {check.finding}")
    if any(check.ok is False for check in checks):
        raise TilewrightError("the installation does not work", hint="see the FAILED lines")


@click.command()
@click.argument("name", required=False)
@common
def targets(name: str | None) -> None:
    """List the known targets, or print one (NAME: a target, 'cpu' or a JSON file) as JSON."""
    from tilewright.records.targets import Target, known_targets

    if name is not None:
        click.echo(json.dumps(Target.lookup(name).to_json(), indent=2))
        return
    for known in ["cpu", *known_targets()]:
        target = Target.lookup(known)
        levels = ", ".join(f"{level.name} {_size(level.capacity_bytes)}" for level in target.levels)
        click.echo(f"{known:<16} {target.backend}, {target.cores} cores, {levels}")


def _size(capacity: int) -> str:
    if capacity == 0:
        return "unbounded"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if capacity >= size:
            return f"{capacity / size:g} {unit}"
    return f"{capacity} B"
