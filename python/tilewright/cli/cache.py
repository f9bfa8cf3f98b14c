"""`tilewright cache`: the size of the compilation cache, and its removal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.cli.group import common, json_flag
from tilewright.errors import OutputError
from tilewright.system.cache_path import default_cache, most_bytes

if TYPE_CHECKING:
    from tilewright.cache.store import Cache

_FOLDER = click.option(
    "--cache",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The cache in this folder.  [default: the user's own]",
)


@click.group("cache", invoke_without_command=True)
@_FOLDER
@json_flag
@common
@click.pass_context
def cache_command(context: click.Context, folder: Path | None, as_json: bool) -> None:
    """Show the compilation cache: its folder, its programs and their size."""
    context.obj = folder
    if context.invoked_subcommand is not None:
        return
    usage = _cache(folder).usage()
    most = most_bytes()
    if as_json:
        shown = {
            "folder": str(usage.folder),
            "programs": usage.programs,
            "bytes": usage.bytes,
            "mostBytes": most,
        }
        click.echo(json.dumps(shown, indent=2))
        return
    click.echo(
        f"{usage.folder}: {usage.programs} programs, {usage.bytes / 1e6:.1f} MB of at most {most / 1e6:.0f} MB"
    )


@cache_command.command("clear")
@click.option(
    "--older-than",
    type=click.FloatRange(0),
    metavar="DAYS",
    help="Remove only programs that were last used longer ago.",
)
@_FOLDER
@json_flag
@common
@click.pass_context
def clear(context: click.Context, older_than: float | None, folder: Path | None, as_json: bool) -> None:
    """Remove programs from the compilation cache."""
    cache = _cache(folder or context.obj)
    before = cache.usage().bytes
    try:
        count = cache.clear(older_than_days=older_than)
    except OSError as error:
        raise OutputError(f"cannot be changed ({error.strerror})", where=str(cache.folder)) from None
    freed = before - cache.usage().bytes
    if as_json:
        click.echo(json.dumps({"folder": str(cache.folder), "removed": count, "bytes": freed}, indent=2))
        return
    click.echo(f"{cache.folder}: {count} programs removed, {freed / 1e6:.1f} MB")


def _cache(folder: Path | None) -> Cache:
    from tilewright.cache.store import Cache

    chosen = folder.absolute() if folder is not None else default_cache()
    if chosen is None:
        raise OutputError("TILEWRIGHT_CACHE switches the cache off", hint="name one with --cache")
    return Cache(chosen, most_bytes=most_bytes())
