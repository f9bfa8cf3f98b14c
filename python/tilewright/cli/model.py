"""Compiles or loads the model that a command line names."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.cli.group import read_standard_input
from tilewright.errors import InputError, PlanError
from tilewright.records.options import CompileOptions
from tilewright.records.threads import thread_choices

if TYPE_CHECKING:
    from tilewright.api.progress import Progress
    from tilewright.frontends import Model
    from tilewright.records.plan import Plan
    from tilewright.runtime.program import Program


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Yields a callback that shows the current step and its time in a spinner, on terminals only."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda step: bar.update(task, description=step)


def model_argument(model: str) -> Model:
    # An argument is always a path, whatever it looks like; standard input is content.
    return read_standard_input("the model") if model == "-" else Path(model)


def plan_argument(plan: Path | None) -> Plan | Path | None:
    """Returns the plan that `--plan` names; '-' is standard input."""
    if plan is None or str(plan) != "-":
        return plan
    import json

    from tilewright.records.plan import Plan

    try:
        return Plan.from_json(json.loads(read_standard_input("the plan")))
    except (ValueError, RecursionError) as error:
        raise PlanError(f"not JSON: {error}", where="-") from None


def compile_model(model: str, target: str, options: CompileOptions) -> Program:
    from tilewright.api.compilation import compile_with

    with progress() as step:
        return compile_with(options, model_argument(model), target, progress=step)


def refuse_compiled(model: str, reason: str) -> None:
    """Raises `InputError` for a compiled program where a model is required."""
    if Path(model).suffix != ".vmfb":
        return
    if not Path(model).is_file():
        raise InputError("no such file", where=model, hint="check the path of the model")
    raise InputError(reason, where=model, hint="give the ONNX or MLIR file it was compiled from")


def open_model(model: str, target: str, options: CompileOptions) -> Program:
    """Loads a compiled program, or compiles a model."""
    if Path(model).suffix == ".vmfb":
        from tilewright.runtime.loading import load

        return load(model, threads=thread_choices(options.threads)[-1] if options.threads else None)
    return compile_model(model, target, options)
