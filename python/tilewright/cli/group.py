"""Shared parts of all commands: error handling, common options and messages."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tilewright.errors import NativeError, PassError, TilewrightError
from tilewright.system.workfolder import MOST_KEPT, is_kept

Command = TypeVar("Command", bound=Callable[..., Any])

_TRACEBACK, _READ = "tilewright.traceback", "tilewright.read"


class _Reporting(click.Command):
    """Context manager that turns errors into one line and an exit status.

    The status is 1 for a user's error, 70 for a bug in Tilewright and 130 for an interrupt.
    """

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except TilewrightError as error:
            if context.meta.get(_TRACEBACK):
                raise
            click.echo(f"error: {' '.join(str(error).split())}", err=True)
            if isinstance(error, PassError) and error.reproducer:
                click.echo(f"reproduce it with: {error.reproducer}", err=True)
                if is_kept(error.reproducer):
                    click.echo(f"(its input is kept until {MOST_KEPT} later failures)", err=True)
            context.exit(1)
        except BrokenPipeError:
            # The reader of a pipe closed it, so nothing more is to be written.
            sys.stderr.close()
            context.exit(0)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            context.exit(130)
        except Exception as error:
            if context.meta.get(_TRACEBACK):
                raise
            summary = " ".join(f"{type(error).__name__}: {error}".split())[:500]
            click.echo(f"internal error: {summary}; run with --traceback for a report", err=True)
            context.exit(70)


class Commands(_Reporting, click.Group):
    """Group of all commands. Help and version need neither the extension module nor IREE.

    If the extension module does not load, the help says why.
    """

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(context, formatter)
        if problem := broken_installation():
            with formatter.section("This installation does not work"):
                formatter.write_text(problem)


class StandaloneCommand(_Reporting):
    """A command outside the group, with the same error handling."""


def common(command: Command) -> Command:
    """Adds the options that every command has."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.meta[_TRACEBACK] = True

    option = click.option(
        "--traceback",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=remember,
        help="Show where in Tilewright an error comes from.",
    )
    return option(command)


def broken_installation() -> str:
    """Returns why nothing can be compiled because the extension module does not load; "" if it loads."""
    try:
        importlib.import_module("tilewright.ir.native")
    except NativeError as error:
        return f"{error}. `tilewright doctor` examines the rest."
    return ""


def renamed(old: str, new: str) -> Callable[[Command], Command]:
    """Adds a hidden option that refuses the old spelling and names the new one."""

    def refuse(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(f"{old} is now {new}")

    name = f"old_{old.strip('-').replace('-', '_')}"  # the new option may use the old name
    return click.option(old, name, hidden=True, expose_value=False, is_eager=True, callback=refuse)


one_target = click.option("--target", default="cpu", show_default=True, help="Target name or JSON file.")

jobs_option = click.option(
    "--jobs", type=click.IntRange(1), help="Number of processes; default: one per core."
)

json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def read_standard_input(what: str) -> bytes:
    """Reads all of standard input; raises a usage error if two arguments are '-', since it can be read only once."""
    context = click.get_current_context()
    before = context.meta.setdefault(_READ, what)
    if before != what:
        raise click.UsageError(f"standard input cannot be both {before} and {what}")
    return sys.stdin.buffer.read()


def duration(_context: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    """Checks the seconds that an option gives; floats include "nan" and "inf"."""
    if value is not None and not 0 < value < float("inf"):
        raise click.BadParameter(f"{value:g} is not a valid time limit; give a number of seconds above 0")
    return value


timeout = click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    callback=duration,
    help="End a compilation that takes longer, and name the step that was running.  [default: no limit]",
)


def tell(text: str) -> None:
    """Prints a message for people to stderr, so that it does not go into a pipe."""
    click.echo(text, err=True)


def refuse_beside(option: str, *names: str) -> None:
    """Raises a usage error if an option that has no effect beside `option` was given; `names` are parameter names."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[-1]} cannot be combined with {option}")
