"""Command line of the fuzzer: `python -m fuzz`, in a checkout only, because wheels do not contain it."""

from __future__ import annotations

from pathlib import Path

import click
from tilewright.cli.group import (
    StandaloneCommand,
    common,
    duration,
    jobs_option,
    one_target,
    refuse_beside,
    renamed,
)
from tilewright.errors import TilewrightError


@click.command(
    "python -m fuzz", cls=StandaloneCommand, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--seeds", default="0:256", show_default=True, metavar="A:B", help="Random graphs of these seeds."
)
@one_target
@click.option(
    "--device",
    metavar="sim:GPU",
    help="Run the kernels on a simulated GPU, such as sim:h200, instead of this machine.",
)
@click.option(
    "--kind",
    type=click.Choice(["all", "windows", "wide", "dynamic", "twins", "special"]),
    default="all",
    show_default=True,
    help="Draw elementwise ops, reductions and movement; pads, windows and masks at odd sizes; all operators, with "
    "fixed or open dims; chains that are computed in two ways; or give NaN, infinities and other special values.",
)
@jobs_option
@click.option(
    "--seconds", type=float, callback=duration, help="Start no more graphs or inputs after this many seconds."
)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    help="Folder for reproducers and summary.json.",
)
@renamed("--out", "--output")
@click.option(
    "--tally",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Add the figures of this run to those of earlier ones in this file.",
)
@click.option(
    "--shrink/--no-shrink", default=True, show_default=True, help="Reduce failing models to small ones."
)
@click.option(
    "--replay", type=click.Path(path_type=Path), metavar="FILE", help="Judge this ONNX model instead."
)
@click.option("--hostile", type=click.IntRange(1), metavar="N", help="Feed this many broken inputs instead.")
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="Folder of lit tests to break, for --hostile."
)
@common
def fuzz(
    seeds: str,
    target: str,
    device: str | None,
    kind: str,
    jobs: int | None,
    seconds: float | None,
    out: Path | None,
    tally: Path | None,
    shrink: bool,
    replay: Path | None,
    hostile: int | None,
    corpus: Path | None,
) -> None:
    """Compare random models with float64, and check that the front end reports clean errors on broken models."""
    from tilewright.records.targets import resolve_targets
    from tilewright.simulator.programs import simulated_target

    try:
        from fuzz import command
    except ModuleNotFoundError as error:
        raise TilewrightError(
            f"the judge needs {error.name}", hint="pip install 'tilewright[compare]'"
        ) from None

    if device is not None:
        refuse_beside("--device", "target")
        simulated_target(device)
        target = device
    else:
        resolve_targets(target, threads=1)
    first, end = _range(seeds)
    if replay is not None:
        command.replay(replay, seed=first, target=target, kind=kind, say=click.echo)
        return
    if hostile is not None:
        failures = command.feed_hostile(
            range(first, first + hostile),
            jobs=jobs,
            seconds=seconds,
            out=out,
            corpus=corpus,
            tally=tally,
            say=click.echo,
        )
    else:
        summary = command.fuzz(
            range(first, end),
            target=target,
            jobs=jobs,
            seconds=seconds,
            out=out,
            small=shrink,
            kind=kind,
            tally=tally,
            say=click.echo,
        )
        failures = len(summary["failures"])
    if failures:
        raise TilewrightError(f"{failures} findings", hint="see the lines above")


def _range(text: str) -> tuple[int, int]:
    first, _, end = text.partition(":")
    if not (first.isdigit() and end.isdigit() and int(first) < int(end)):
        raise click.BadParameter(f"'{text}' is not of the form A:B with A < B", param_hint="--seeds")
    return int(first), int(end)


def main() -> None:
    """Runs the command line `python -m fuzz`."""
    fuzz(prog_name="python -m fuzz")
