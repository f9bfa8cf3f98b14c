"""The command line: `tilewright compile | run | explain | tune | tuning | simulate | doctor | fuzz | targets`."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from tilewright.errors import InputError, OutputError, PassError, TilewrightError
from tilewright.options import CompileOptions, NumericsMode
from tilewright.simulator_command import simulate
from tilewright.tuning.location import default_path

if TYPE_CHECKING:
    from tilewright.compare import Comparison
    from tilewright.compilation import Progress
    from tilewright.frontends import Model
    from tilewright.program import Program
    from tilewright.signature import Array

Command = TypeVar("Command", bound=Callable[..., Any])

_TRACEBACK = "tilewright.traceback"


class _Commands(click.Group):
    """Turns errors into one line and an exit status: 1 for a user's, 70 for ours, 130 when interrupted."""

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
            context.exit(1)
        except BrokenPipeError:
            # Whoever reads our output has seen enough.
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


def _common(command: Command) -> Command:
    """Options that every command has."""

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


def _compiling(command: Command) -> Command:
    """Options of every command that compiles."""
    decorators = [
        click.option(
            "--target",
            default="cpu",
            show_default=True,
            help="Target name or JSON file; several with commas.",
        ),
        click.option("--threads", type=click.IntRange(1, 64), help="Threads to run on; default: all cores."),
        click.option(
            "--iree-flag", "iree_flags", multiple=True, metavar="FLAG", help="Pass a flag to IREE's compiler."
        ),
        click.option("--plan", type=click.Path(path_type=Path), help="Carry out this plan (JSON)."),
        click.option(
            "--dump-dir", type=click.Path(path_type=Path), help="Write every intermediate form here."
        ),
        click.option("--strict", is_flag=True, help="Fail instead of leaving kernels out."),
        click.option(
            "--numerics",
            type=click.Choice(get_args(NumericsMode)),
            default="default",
            show_default=True,
            help="What kernels may do to numbers; strict: round and accumulate exactly as the model says; tf32: "
            "matmuls of f32 on GPUs may multiply in tf32.",
        ),
        click.option(
            "--no-grid-sync",
            is_flag=True,
            help="Launch kernels for GPUs where they would wait for each other at barriers of the grid.",
        ),
        click.option(
            "--tuning",
            type=click.Path(path_type=Path),
            help="Take measured plans from this database.  [default: the one that `tilewright tune` fills]",
        ),
        click.option("--no-tuning", is_flag=True, help="Take no measured plans."),
        click.option("--entry", help="The function to compile, for MLIR with several."),
        click.option(
            "--parameters",
            multiple=True,
            metavar="SCOPE=FILE",
            help="Parameter archive (.irpa) that MLIR input refers to.",
        ),
        click.option(
            "--state",
            multiple=True,
            metavar="OUTPUT=INPUT",
            help="An output that continues an input in place, from call to call.",
        ),
        _common,
    ]

    @functools.wraps(command)
    def with_options(
        *arguments: Any,
        threads: int | None,
        iree_flags: tuple[str, ...],
        plan: Path | None,
        dump_dir: Path | None,
        strict: bool,
        numerics: NumericsMode,
        no_grid_sync: bool,
        tuning: Path | None,
        no_tuning: bool,
        entry: str | None,
        parameters: tuple[str, ...],
        state: tuple[str, ...],
        **keywords: Any,
    ) -> Any:
        if tuning is not None and no_tuning:
            raise click.UsageError("--tuning and --no-tuning exclude each other")
        options = CompileOptions(
            threads=threads,
            iree_flags=iree_flags,
            plan=plan,
            dump_dir=dump_dir,
            strict=strict,
            numerics=numerics,
            grid_sync=not no_grid_sync,
            tuning=None if no_tuning else tuning or default_path(),
            entry=entry,
            parameters=dict(_parameter(text) for text in parameters),
            state=dict(_continuation(text) for text in state),
        )
        return command(*arguments, options=options, **keywords)

    for decorate in reversed(decorators):
        with_options = decorate(with_options)
    return with_options  # type: ignore[return-value]


def _parameter(text: str) -> tuple[str, Path]:
    scope, equals, path = text.partition("=")
    if not equals:
        raise click.BadParameter(f"'{text}' is not of the form SCOPE=FILE", param_hint="--parameters")
    return scope, Path(path)


def _continuation(text: str) -> tuple[str, str]:
    output, equals, continued = text.partition("=")
    if not equals:
        raise click.BadParameter(f"'{text}' is not of the form OUTPUT=INPUT", param_hint="--state")
    return output, continued


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tilewright", prog_name="tilewright")
def cli() -> None:
    """Compile deep learning models into few kernels, in front of IREE."""


@cli.command("compile")
@click.argument("model", metavar="MODEL")
@click.option(
    "-o", "--output", metavar="FILE", help="Where the .vmfb goes; '-' is stdout. Default: MODEL's name."
)
@click.option(
    "--plan-out", type=click.Path(path_type=Path), help="Write the plan that was carried out (JSON)."
)
@_compiling
def compile_command(
    model: str, output: str | None, plan_out: Path | None, target: str, options: CompileOptions
) -> None:
    """Compile MODEL (ONNX or MLIR; '-' is stdin) to a module for IREE's runtime."""
    program = _compile(model, target, options)
    if plan_out is not None and program.plan is not None:
        program.plan.save(plan_out)
    if output == "-":
        _write_to_stdout(program)
        return
    path = program.save(output or ("model.vmfb" if model == "-" else Path(model).stem + ".vmfb"))
    _tell(f"{path}: {len(program.kernels)} fused kernels, {sum(program.metadata.seconds.values()):.1f} s")
    for note in program.metadata.notes:
        _tell(f"note: {note}")


@cli.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "-i",
    "--input",
    "input_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help=".npy per input, in order, or one .npz. Default: random.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Save the outputs to this .npz.")
@click.option("--seed", default=0, show_default=True, help="Seed of random inputs.")
@click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a named dim of random inputs."
)
@click.option("--compare", is_flag=True, help="Time it beside IREE alone and ONNX Runtime.")
@click.option("--seconds", default=10.0, show_default=True, help="How long to time for.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option(
    "--device",
    metavar="sim:GPU",
    help="Run the kernels on a simulated GPU, say sim:h200. Default: this machine.",
)
@_compiling
def run(
    model: str,
    input_files: tuple[Path, ...],
    output: Path | None,
    seed: int,
    dims: tuple[str, ...],
    compare: bool,
    seconds: float,
    as_json: bool,
    device: str | None,
    target: str,
    options: CompileOptions,
) -> None:
    """Run MODEL (ONNX, MLIR or a compiled .vmfb), on random inputs or given ones."""
    sizes = dict(_dim(text) for text in dims)
    if device is not None:
        _run_simulated(model, device, options, input_files, output, seed, sizes)
        return
    if compare:
        _run_comparison(model, target, options, input_files, output, seed, seconds, as_json)
        return
    program = _open(model, target, options)
    arrays = _arrays(program, input_files, seed, sizes)
    started = time.perf_counter()
    outputs = program(*arrays)
    elapsed = time.perf_counter() - started
    _print_outputs(program, outputs)
    _tell(f"{elapsed * 1e3:.2f} ms (first call)")
    _save_outputs(program, outputs, output)


@cli.command()
@click.argument("model", metavar="MODEL")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output", default="-", metavar="FILE", help="Where it goes; '-' is stdout (default).")
@_compiling
def explain(model: str, form: str, output: str, target: str, options: CompileOptions) -> None:
    """Say what MODEL (ONNX, MLIR or a compiled .vmfb) became: kernels, edges, and what was left to IREE."""
    program = _open(model, target, options)
    text = json.dumps(program.explain("json"), indent=2) if form == "json" else program.explain("text")
    if output == "-":
        click.echo(text)
        return
    try:
        Path(output).write_text(text + "\n")
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=output) from None


_DATABASE = click.option(
    "--database",
    type=click.Path(path_type=Path),
    help="The tuning database.  [default: $TILEWRIGHT_TUNING, or tilewright/tuning.db in the user's cache]",
)


@cli.command()
@click.argument("model", metavar="MODEL")
@click.option("--target", default="cpu", show_default=True, help="Target name or JSON file.")
@click.option("--threads", type=click.IntRange(1, 64), help="Threads to run on; default: as compile chooses.")
@click.option(
    "--numerics",
    type=click.Choice(get_args(NumericsMode)),
    default="default",
    show_default=True,
    help="What kernels may do to numbers.",
)
@_DATABASE
@click.option(
    "--candidates", type=click.IntRange(1), default=20, show_default=True, help="Plans to time, at most."
)
@click.option("--jobs", type=click.IntRange(1), help="Processes that compile; default: one per core.")
@click.option("--entry", help="The function to tune, for MLIR with several.")
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    help="For a GPU: the folder to fill with what times plans there.",
)
@_common
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
) -> None:
    """Time plans of MODEL's kernels on this machine, for later compilations to use.

    Interrupt it at any time: started again it goes on where it stopped.
    """
    from tilewright.tuning.show import print_tuning, tuning_progress
    from tilewright.tuning.tuner import tune as tune_model

    if bundle is not None:
        from tilewright.tuning.bundle import make_bundle

        found = make_bundle(_model_argument(model), target, bundle, numerics=numerics, candidates=candidates)
        _tell(f"{bundle}: {found} subprograms; where the GPU is, run: python3 run.py")
        return

    with tuning_progress() as progress:
        result = tune_model(
            _model_argument(model),
            target,
            threads=threads,
            numerics=numerics,
            database=database,
            candidates=candidates,
            jobs=jobs,
            entry=entry,
            progress=progress,
        )
    for note in result.notes:
        _tell(f"note: {note}")
    print_tuning(model, result)


@cli.group()
def tuning() -> None:
    """The database of what `tilewright tune` measured."""


@tuning.command("list")
@_DATABASE
@_common
def list_tuning(database: Path | None) -> None:
    """List the decisions, the latest first."""
    from tilewright.tuning.database import Database
    from tilewright.tuning.show import decision_line

    with Database.existing(database or default_path()) as kept:
        for decision in kept.decisions():
            click.echo(decision_line(decision))


@tuning.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@_DATABASE
@_common
def export_tuning(file: Path, database: Path | None) -> None:
    """Write everything to one FILE, also while others tune."""
    from tilewright.tuning.database import Database

    with Database.existing(database or default_path()) as kept:
        _tell(f"{file}: {kept.export(file)} decisions")


@tuning.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@_DATABASE
@_common
def import_tuning(file: Path, database: Path | None) -> None:
    """Take over the decisions in FILE; of two for the same subprogram, the later stays.

    FILE is a database, or the results (.json) of a bundle for a GPU.
    """
    from tilewright.tuning.bundle import take_results
    from tilewright.tuning.database import Database

    with Database(database or default_path()) as kept:
        if file.suffix == ".json":
            _tell(f"{kept.path}: {take_results(file, kept)} decisions")
            return
        _tell(f"{kept.path}: {kept.take_from(file)} decisions taken over")


@cli.command()
@click.option(
    "--seeds", default="0:256", show_default=True, metavar="A:B", help="Random graphs of these seeds."
)
@click.option("--target", default="cpu", show_default=True, help="Target name or JSON file.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; default: one per core.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for reproducers and summary.json.")
@click.option(
    "--shrink/--no-shrink", default=True, show_default=True, help="Make small models of those that fail."
)
@click.option(
    "--replay", type=click.Path(path_type=Path), metavar="FILE", help="Judge this ONNX model instead."
)
@click.option("--hostile", type=click.IntRange(1), metavar="N", help="Feed N broken inputs instead.")
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="Folder of lit tests to break, for --hostile."
)
@_common
def fuzz(
    seeds: str,
    target: str,
    jobs: int | None,
    out: Path | None,
    shrink: bool,
    replay: Path | None,
    hostile: int | None,
    corpus: Path | None,
) -> None:
    """Hold random models to float64, and the front end to clean errors on broken ones."""
    try:
        from tilewright.fuzz import command
    except ModuleNotFoundError as error:
        raise TilewrightError(
            f"the judge needs {error.name}", hint="pip install 'tilewright[compare]'"
        ) from None

    first, end = _range(seeds)
    if replay is not None:
        command.replay(replay, seed=first, target=target, say=click.echo)
        return
    if hostile is not None:
        failures = command.feed_hostile(
            range(first, first + hostile), jobs=jobs, out=out, corpus=corpus, say=click.echo
        )
    else:
        summary = command.fuzz(
            range(first, end), target=target, jobs=jobs, out=out, small=shrink, say=click.echo
        )
        failures = len(summary["failures"])
    if failures:
        raise TilewrightError(f"{failures} findings", hint="see the lines above")


@cli.command()
@_common
def doctor() -> None:
    """Check the installation."""
    from tilewright.doctor import examine

    checks = examine()
    for check in checks:
        mark = {True: "ok", False: "FAILED", None: "-"}[check.ok]
        click.echo(f"{mark:<7} {check.name}: {check.finding}")
    if any(check.ok is False for check in checks):
        raise TilewrightError("the installation does not work", hint="see the FAILED lines")


@cli.command()
@click.argument("name", required=False)
@_common
def targets(name: str | None) -> None:
    """List the known targets, or print one (NAME: a target, 'cpu' or a JSON file) as JSON."""
    from tilewright.targets import Target, known_targets

    if name is not None:
        click.echo(json.dumps(Target.lookup(name).to_json(), indent=2))
        return
    for known in ["cpu", *known_targets()]:
        target = Target.lookup(known)
        levels = ", ".join(f"{level.name} {_size(level.capacity_bytes)}" for level in target.levels)
        click.echo(f"{known:<16} {target.backend}, {target.cores} cores, {levels}")


cli.add_command(_common(simulate))


def main() -> None:
    """The console entry point."""
    cli()


def _tell(text: str) -> None:
    """For people, not for pipes."""
    click.echo(text, err=True)


def _size(capacity: int) -> str:
    if capacity == 0:
        return "unbounded"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if capacity >= size:
            return f"{capacity / size:g} {unit}"
    return f"{capacity} B"


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    """A spinner with the name of the step and its time, on terminals only."""
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


def _model_argument(model: str) -> Model:
    # An argument is a path, whatever it looks like; stdin is content.
    return sys.stdin.buffer.read() if model == "-" else Path(model)


def _compile(model: str, target: str, options: CompileOptions) -> Program:
    from tilewright.compilation import compile_with

    with _progress() as progress:
        return compile_with(options, _model_argument(model), target, progress=progress)


def _open(model: str, target: str, options: CompileOptions) -> Program:
    """Loads what is compiled, compiles what is not."""
    if Path(model).suffix == ".vmfb":
        from tilewright.program import load

        return load(model, threads=options.threads)
    return _compile(model, target, options)


def _run_simulated(
    model: str,
    device: str,
    options: CompileOptions,
    files: tuple[Path, ...],
    output: Path | None,
    seed: int,
    dims: dict[str, int],
) -> None:
    """Compiles for the GPU and runs the kernels on the simulated one; what they did goes to stdout."""
    from tilewright.simulated import simulate_program

    kind, _, name = device.partition(":")
    if kind != "sim" or not name:
        raise click.BadParameter(
            f"'{device}' is not of the form sim:GPU, say sim:h200", param_hint="--device"
        )
    if Path(model).suffix == ".vmfb":
        raise InputError("a compiled program has no kernels to simulate", where=model, hint="give the model")
    with tempfile.TemporaryDirectory(prefix="tilewright-simulated-") as folder:
        dump = options.dump_dir or Path(folder)
        program = _compile(
            model, name if Path(name).exists() else f"cuda:{name}", replace(options, dump_dir=dump)
        )
        simulated = simulate_program(program, dump, _arrays(program, files, seed, dims))
    for report in simulated.kernels:
        click.echo(report.summary())
    if simulated.outputs is None:
        left = ", ".join(simulated.invented) or "all of it"
        _tell(f"note: no outputs, because IREE computes a part ({left}); kernels read random numbers there")
        return
    _print_outputs(program, simulated.outputs)
    _save_outputs(program, simulated.outputs, output)


def _write_to_stdout(program: Program) -> None:
    if program.parameter_paths:
        raise OutputError(
            "a program with weights is several files", where="-", hint="give a file name with -o"
        )
    stream = sys.stdout.buffer
    stream.write(program.module_path.read_bytes())
    stream.flush()


def _range(text: str) -> tuple[int, int]:
    first, _, end = text.partition(":")
    if not (first.isdigit() and end.isdigit() and int(first) < int(end)):
        raise click.BadParameter(f"'{text}' is not of the form A:B with A < B", param_hint="--seeds")
    return int(first), int(end)


def _dim(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not size.isdigit():
        raise click.BadParameter(f"'{text}' is not of the form NAME=SIZE", param_hint="--dim")
    return name, int(size)


def _arrays(program: Program, files: tuple[Path, ...], seed: int, dims: dict[str, int]) -> list[Array]:
    from tilewright.inputs import random_inputs, read_arrays

    if files:
        return read_arrays(files, program.signature)
    if program.signature is None:
        raise InputError("the module does not say what its inputs are", hint="give them with --input")
    return random_inputs(program.signature, seed=seed, dims=dims)


def _output_names(program: Program, count: int) -> list[str]:
    if program.signature is None:
        return [f"output{index}" for index in range(count)]
    return [spec.name for spec in program.signature.outputs]


def _print_outputs(program: Program, outputs: list[Array]) -> None:
    import numpy as np

    for name, array in zip(_output_names(program, len(outputs)), outputs, strict=True):
        shape = "x".join(str(size) for size in array.shape) or "scalar"
        summary = "empty"
        if array.size:
            wide = array.astype(np.float64)
            summary = f"min {wide.min():.6g}, mean {wide.mean():.6g}, max {wide.max():.6g}"
        click.echo(f"{name}: {array.dtype}[{shape}], {summary}")


def _save_outputs(program: Program, outputs: list[Array], path: Path | None) -> None:
    if path is None:
        return
    import numpy as np

    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            named: dict[str, Any] = dict(zip(_output_names(program, len(outputs)), outputs, strict=True))
            np.savez(file, **named)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None


def _run_comparison(
    model: str,
    target: str,
    options: CompileOptions,
    input_files: tuple[Path, ...],
    output: Path | None,
    seed: int,
    seconds: float,
    as_json: bool,
) -> None:
    from tilewright.compare import compare
    from tilewright.inputs import read_arrays

    if model == "-" or Path(model).suffix == ".vmfb":
        raise InputError(
            "only a model in a file can be compared", where=model, hint="give the ONNX or MLIR file"
        )
    inputs = read_arrays(input_files, None) if input_files else None
    with _progress() as progress:
        result = compare(
            Path(model), target, options=options, inputs=inputs, seconds=seconds, seed=seed, progress=progress
        )
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=2))
    else:
        _print_comparison(model, result)
    _save_outputs(result.program, list(result.outputs), output)


def _print_comparison(model: str, result: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{model}, {result.threads} threads, {result.turns} turns", title_justify="left")
    table.add_column("")
    for heading in ("its time / ours\n(95% interval)", "median", "kernels\na call", "error against\nfloat64"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in result.rows:
        table.add_row(
            row.name,
            str(row.speedup) if row.speedup else "1",
            f"{row.seconds * 1e3:.3f} ms",
            str(row.kernels) if row.kernels is not None else "?",
            f"{max(row.errors, default=0.0):.1e}" if row.errors is not None else "?",
            row.detail,
        )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    for note in result.program.metadata.notes:
        console.print(f"note: {note}")


if __name__ == "__main__":
    main()
