"""`tilewright check`: compares a model's program with float64, and finds the op at fault."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tilewright.cli.group import tell
from tilewright.cli.model import model_argument, progress, refuse_compiled
from tilewright.cli.run import read_inputs
from tilewright.errors import ModelError, OutputError
from tilewright.records.options import CompileOptions

DIFFERENT = 3
"""Exit status if results differ; 1 is an error, and 2 wrong usage."""


def run_check(
    model: str,
    target: str,
    options: CompileOptions,
    input_files: tuple[Path, ...],
    output: Path | None,
    runs: int,
    seed: int,
    dims: dict[str, int],
    device: str | None,
    as_json: bool,
) -> None:
    """Prints the verdict, writes a reproducer of a difference, and exits with `DIFFERENT` if there is one."""
    refuse_compiled(model, "a compiled program has no reference")
    folder = output or Path(f"{'model' if model == '-' else Path(model).stem}-wrong")
    if output is not None and folder.exists():
        raise OutputError("exists already", where=str(folder), hint="name another folder with -o")
    try:
        from tilewright.compare.check import check
        from tilewright.compare.reproducer import write_reproducer
    except ImportError as error:
        raise ModelError(f"a package for the reference is missing ({error})") from None
    given = model_argument(model)
    if isinstance(given, bytes):
        import onnx

        from tilewright.frontends.onnx import parse

        given = parse(given, name=model)
        assert isinstance(given, onnx.ModelProto)
    inputs = read_inputs(input_files, None) if input_files else None
    with progress() as step:
        checked = check(
            given,
            target,
            options=options,
            inputs=inputs,
            runs=runs,
            seed=seed,
            dims=dims,
            device=device,
            progress=step,
        )
    reproducer = None
    if checked.culprit is not None:
        reproducer = write_reproducer(checked, _free(folder), options=options, target=target, device=device)
    if as_json:
        click.echo(json.dumps({**checked.to_json(), "reproducer": reproducer and str(reproducer)}, indent=2))
    elif checked.is_right:
        sets = "1 set of inputs" if checked.runs == 1 else f"{checked.runs} sets of inputs"
        click.echo(f"right: {checked.outputs} outputs on {sets}, {checked.kernels} fused kernels")
        if checked.kernels == 0:
            tell(
                "note: no kernel of ours ran; `tilewright explain` says why, and --dims gives sizes to open dims"
            )
    else:
        for difference in checked.differences:
            click.echo(f"WRONG: {difference}")
        click.echo(str(checked.culprit or "no part of the model is wrong on its own"))
    if reproducer is not None:
        tell(f"{reproducer}: a reproducer; run {reproducer / 'run.py'}")
    if not checked.is_right:
        click.get_current_context().exit(DIFFERENT)


def _free(folder: Path) -> Path:
    """Returns the folder, or its name with a number if there is one from an earlier check."""
    number, free = 1, folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free
