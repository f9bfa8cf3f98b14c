"""`tilewright tune`, which measures plans, and `tilewright tuning`, which manages the database of the results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import get_args

import click

from tilewright.cli.group import (
    common,
    jobs_option,
    json_flag,
    one_target,
    read_standard_input,
    tell,
    timeout,
)
from tilewright.cli.model import model_argument
from tilewright.records.options import NumericsMode
from tilewright.system.tuning_path import default_path
from tilewright.system.workfolder import WorkFolder

_DATABASE = click.option(
    "--database",
    type=click.Path(path_type=Path),
    help="The tuning database.  [default: $TILEWRIGHT_TUNING, or tilewright/tuning.db in the user's cache]",
)


@click.command()
@click.argument("model", metavar="MODEL")
@one_target
@click.option(
    "--threads", type=click.IntRange(1, 64), help="Threads that programs may use; default: one per core."
)
@click.option(
    "--numerics",
    type=click.Choice(get_args(NumericsMode)),
    default="default",
    show_default=True,
    help="Allowed changes of numerics.",
)
@_DATABASE
@click.option(
    "--candidates",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Maximum number of plans to time.",
)
@jobs_option
@click.option("--entry", help="Function to tune, for MLIR with several functions.")
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    help="For a GPU: folder to fill with plans and a script that times them on that GPU.",
)
@timeout
@common
def tune(
    model: str,
    target: str,
    threads: int | None,
    numerics: NumericsMode,
    database: Path | None,
    candidates: int,
    jobs: int | None,
    entry: str | None,
    bundle: Path | None,
    timeout: float | None,
) -> None:
    """Time plans of MODEL's kernels on this machine, for later compilations to use.

    You may interrupt it at any time; the next run continues where it stopped.
    """
    from tilewright.tuning.show import print_tuning, tuning_progress
    from tilewright.tuning.tuner import tune as tune_model

    if bundle is not None:
        here = {"--entry": entry, "--threads": threads, "--database": database, "--jobs": jobs}
        if given := [name for name, value in here.items() if value is not None]:
            raise click.UsageError(f"{given[0]} cannot be combined with --bundle")
        from tilewright.tuning.bundle import make_bundle

        found = make_bundle(
            model_argument(model), target, bundle, numerics=numerics, candidates=candidates, timeout=timeout
        )
        tell(f"{bundle}: {found} subprograms; where the GPU is, run: python3 run.py")
        return

    with tuning_progress() as progress:
        result = tune_model(
            model_argument(model),
            target,
            threads=threads,
            numerics=numerics,
            database=database,
            candidates=candidates,
            jobs=jobs,
            entry=entry,
            timeout=timeout,
            progress=progress,
        )
    for note in result.notes:
        tell(f"note: {note}")
    print_tuning(model, result)


@click.group()
def tuning() -> None:
    """Manage the database of `tilewright tune`."""


@tuning.command("list")
@_DATABASE
@json_flag
@common
def list_tuning(database: Path | None, as_json: bool) -> None:
    """List the decisions, the latest first."""
    from tilewright.records.encoding import to_json
    from tilewright.tuning.database import Database
    from tilewright.tuning.show import decision_line

    with Database.existing(database or default_path()) as kept:
        decisions = kept.decisions()
    if as_json:
        click.echo(json.dumps(to_json(decisions), indent=2))
        return
    for decision in decisions:
        click.echo(decision_line(decision))


@tuning.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@_DATABASE
@common
def export_tuning(file: Path, database: Path | None) -> None:
    """Write all decisions to one FILE, even while others tune; '-' is stdout."""
    from tilewright.tuning.database import Database

    with Database.existing(database or default_path()) as kept:
        if str(file) == "-":
            with WorkFolder("tuning") as folder:
                kept.export(folder / "export.db")
                sys.stdout.buffer.write((folder / "export.db").read_bytes())
                sys.stdout.buffer.flush()
            return
        tell(f"{file}: {kept.export(file)} decisions")


@tuning.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@_DATABASE
@common
def import_tuning(file: Path, database: Path | None) -> None:
    """Add the decisions in FILE; of two for the same subprogram, the later stays.

    FILE is a database, or the results (.json) of a bundle for a GPU; '-' is stdin.
    """
    from tilewright.tuning.bundle import take_results
    from tilewright.tuning.database import Database

    with WorkFolder("tuning") as folder, Database(database or default_path()) as kept:
        if str(file) == "-":
            given = read_standard_input("the decisions")
            file = folder / ("standard-input.db" if given.startswith(b"SQLite") else "standard-input.json")
            file.write_bytes(given)
        if file.suffix == ".json":
            tell(f"{kept.path}: {take_results(file, kept)} decisions")
            return
        tell(f"{kept.path}: {kept.take_from(file)} decisions added")
