"""The command line: `tilewright compile | run | check | explain | export | tune | cache | calibrate | ...`."""

from __future__ import annotations

import functools
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from tilewright.cli.cache import cache_command
from tilewright.cli.calibrate import calibrate
from tilewright.cli.check import run_check
from tilewright.cli.dims import dims_argument
from tilewright.cli.examine import doctor, targets
from tilewright.cli.group import (
    Command,
    Commands,
    broken_installation,
    common,
    duration,
    json_flag,
    refuse_beside,
    renamed,
    tell,
    timeout,
)
from tilewright.cli.model import compile_model, open_model, plan_argument
from tilewright.cli.policies import explain_edges, explain_policies
from tilewright.cli.run import arrays, print_outputs, run_comparison, run_simulated, save_outputs
from tilewright.cli.simulate import simulate
from tilewright.cli.tune import tune, tuning
from tilewright.errors import OutputError
from tilewright.records.options import CompileOptions, NumericsMode, Policy
from tilewright.system.cache_path import default_cache
from tilewright.system.tuning_path import default_path
from tilewright.system.version import package_version

if TYPE_CHECKING:
    from tilewright.runtime.program import Program


def _compiling(command: Command, more_policies: Sequence[str] = ()) -> Command:
    """Adds the options of every command that compiles. One with `more_policies` is given the policy itself, too."""
    decorators = [
        click.option(
            "--target",
            default="cpu",
            show_default=True,
            help="Target name or JSON file; several with commas.",
        ),
        click.option(
            "--threads",
            type=click.IntRange(1, 64),
            help="Most threads that the program may use if they are predicted to be faster; default: one per core.",
        ),
        click.option(
            "--iree-flag", "iree_flags", multiple=True, metavar="FLAG", help="Pass a flag to IREE's compiler."
        ),
        click.option(
            "--plan",
            type=click.Path(path_type=Path),
            help="Use this plan (JSON) instead of making one; '-' is stdin.",
        ),
        click.option(
            "--dump-dir",
            type=click.Path(path_type=Path),
            help="Write every intermediate form to this folder.",
        ),
        click.option("--strict", is_flag=True, help="Fail instead of leaving ops unfused or kernels out."),
        click.option(
            "--numerics",
            type=click.Choice(get_args(NumericsMode)),
            default="default",
            show_default=True,
            help="Allowed changes of numerics; strict: round and accumulate exactly as the model says; tf32: "
            "f32 matmuls on GPUs may multiply in tf32.",
        ),
        click.option(
            "--policy",
            type=click.Choice([*get_args(Policy), *more_policies]),
            default="greedy",
            show_default=True,
            help="How the plan is made; unfused: every op in a kernel of its own; unified: a search from the plans of "
            "all others; exhaustive: the best forms and partition of at most ten ops.",
        ),
        click.option(
            "--plan-seconds",
            type=click.FloatRange(0),
            default=2.0,
            show_default=True,
            help="About how long each search of the policy unified may take; 0: the best of the other policies.",
        ),
        click.option(
            "--no-grid-sync",
            is_flag=True,
            help="Use separate launches instead of grid barriers in GPU kernels.",
        ),
        click.option(
            "--database",
            type=click.Path(path_type=Path),
            help="Use the measured plans of this tuning database.  [default: the one that `tilewright tune` fills]",
        ),
        renamed("--tuning", "--database"),
        click.option("--no-tuning", is_flag=True, help="Use no measured plans."),
        click.option("--entry", help="Function to compile, for MLIR with several functions."),
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
            help="Update an input in place by an output, so that it is state between calls.",
        ),
        click.option(
            "--dims",
            "open_dims",
            multiple=True,
            metavar="NAME=SIZE",
            help="Size of a dim that the model leaves open (batch=1), least and greatest size (seq=1:512), or sizes to "
            "build ahead (seq=16,128,512); several dims with commas.",
        ),
        click.option(
            "--cache",
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="Use the compilation cache in this folder.  [default: the user's own, see `tilewright cache`]",
        ),
        click.option(
            "--no-cache", is_flag=True, help="Compile even what was compiled before, and store nothing."
        ),
        timeout,
        common,
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
        policy: Policy | Literal["all"],
        plan_seconds: float,
        no_grid_sync: bool,
        database: Path | None,
        no_tuning: bool,
        entry: str | None,
        parameters: tuple[str, ...],
        state: tuple[str, ...],
        open_dims: tuple[str, ...],
        cache: Path | None,
        no_cache: bool,
        timeout: float | None,
        **keywords: Any,
    ) -> Any:
        if database is not None and no_tuning:
            raise click.UsageError("--database and --no-tuning exclude each other")
        if cache is not None and no_cache:
            raise click.UsageError("--cache and --no-cache exclude each other")
        if str(plan) == keywords.get("model") == "-":
            raise click.UsageError("standard input cannot be both the model and the plan")
        options = CompileOptions(
            threads=threads,
            iree_flags=iree_flags,
            plan=plan_argument(plan),
            dump_dir=dump_dir,
            strict=strict,
            numerics=numerics,
            policy="greedy" if policy == "all" else policy,
            plan_seconds=plan_seconds,
            grid_sync=not no_grid_sync,
            tuning=None if no_tuning else database or default_path(),
            entry=entry,
            parameters=dict(_parameter(text) for text in parameters),
            state=dict(_continuation(text) for text in state),
            dims=dims_argument(open_dims),
            cache=None if no_cache else cache.absolute() if cache is not None else default_cache(),
            timeout=timeout,
        )
        if more_policies:
            keywords["policy"] = policy
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


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value:
        return
    click.echo(f"tilewright, version {package_version()}")
    if problem := broken_installation():
        tell(f"This installation does not work: {problem}")
    context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Compile deep learning models into few kernels, in front of IREE."""


@cli.command("compile")
@click.argument("model", metavar="MODEL")
@click.option(
    "-o", "--output", metavar="FILE", help="Path of the .vmfb; '-' is stdout. Default: MODEL's name."
)
@click.option(
    "--plan-out",
    type=click.Path(path_type=Path),
    help="Write the plan of the program (JSON); '-' is stdout.",
)
@_compiling
def compile_command(
    model: str, output: str | None, plan_out: Path | None, target: str, options: CompileOptions
) -> None:
    """Compile MODEL (ONNX or MLIR; '-' is stdin) to a module for IREE's runtime."""
    if output == "-" and str(plan_out) == "-":
        raise click.UsageError("standard output cannot be both the module and the plan")
    program = compile_model(model, target, options)
    if plan_out is not None and program.plan is not None:
        if str(plan_out) == "-":
            click.echo(json.dumps(program.plan.to_json(), indent=2))
        else:
            program.plan.save(plan_out)
    if output == "-":
        _write_to_stdout(program)
        return
    path = program.save(output or ("model.vmfb" if model == "-" else Path(model).stem + ".vmfb"))
    tell(f"{path}: {len(program.kernels)} fused kernels, {sum(program.metadata.seconds.values()):.1f} s")
    for note in (*program.metadata.notes, *program.cache_notes):
        tell(f"note: {note}")


def _print_c_flags(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        from tilewright.runtime.exported import c_flags

        click.echo(shlex.join(c_flags()))
        context.exit()


@cli.command("export")
@click.argument("model", metavar="MODEL")
@click.option("-o", "--output", metavar="FILE", help="Path of the .twp. Default: MODEL's name.")
@click.option(
    "--cflags",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_c_flags,
    help="Print the flags for a C compiler that find header and library, and exit.",
)
@_compiling
def export_command(model: str, output: str | None, target: str, options: CompileOptions) -> None:
    """Write MODEL (ONNX, MLIR or a compiled .vmfb) as one file that applications in C run, without Python or IREE."""
    program = open_model(model, target, options)
    path = program.export(output or ("model.twp" if model == "-" else Path(model).stem + ".twp"))
    tell(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    for note in (*program.metadata.notes, *program.cache_notes):
        tell(f"note: {note}")


_input_files = click.option(
    "-i",
    "--input",
    "input_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help=".npy per input, in order, or one .npz; '-' is stdin. Default: random.",
)
_seed = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of random inputs."
)
_dims = click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a named dim of random inputs."
)
_device = click.option(
    "--device",
    metavar="sim:GPU",
    help="Run the kernels on a simulated GPU, such as sim:h200. Default: this machine.",
)


@cli.command()
@click.argument("model", metavar="MODEL")
@_input_files
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Save the outputs to this .npz; '-' is stdout."
)
@_seed
@_dims
@click.option("--compare", is_flag=True, help="Time it beside IREE alone and ONNX Runtime.")
@click.option(
    "--seconds", default=10.0, show_default=True, callback=duration, help="Seconds to spend on timing."
)
@json_flag
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    help="Write where the time of a few calls goes to this file, for https://ui.perfetto.dev.",
)
@_device
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
    trace: Path | None,
    device: str | None,
    target: str,
    options: CompileOptions,
) -> None:
    """Run MODEL (ONNX, MLIR or a compiled .vmfb), on random inputs or given ones."""
    sizes = dict(_dim(text) for text in dims)
    if device is not None:
        refuse_beside("--device", "target", "compare", "seconds", "as_json", "trace")
        run_simulated(model, device, options, input_files, output, seed, sizes)
        return
    if as_json and not compare:
        raise click.UsageError("--json needs --compare; save outputs with -o")
    if compare:
        refuse_beside("--compare", "open_dims", "trace")
        if as_json and str(output) == "-":
            raise click.UsageError("standard output cannot be both the comparison and the outputs")
        run_comparison(model, target, options, input_files, output, seed, seconds, as_json)
        return
    program = open_model(model, target, options)
    inputs = arrays(program, input_files, seed, sizes)
    started = time.perf_counter()
    outputs = program(*inputs)
    elapsed = time.perf_counter() - started
    print_outputs(program, outputs, to_stderr=str(output) == "-")
    tell(f"{elapsed * 1e3:.2f} ms (first call)")
    if trace is not None:
        from tilewright.runtime.trace import save_trace

        save_trace(trace, program.trace(*inputs))
    save_outputs(program, outputs, output)


@cli.command()
@click.argument("model", metavar="MODEL")
@_input_files
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for the reproducer of a difference. Default: MODEL's name with -wrong.",
)
@click.option(
    "--runs", type=click.IntRange(1), default=3, show_default=True, help="Sets of random inputs to run on."
)
@_seed
@_dims
@_device
@json_flag
@_compiling
def check(
    model: str,
    input_files: tuple[Path, ...],
    output: Path | None,
    runs: int,
    seed: int,
    dims: tuple[str, ...],
    device: str | None,
    as_json: bool,
    target: str,
    options: CompileOptions,
) -> None:
    """Check that MODEL (ONNX; '-' is stdin) computes what it says in float64; find the op at fault if not.

    A difference is traced to the first op that causes it, and a folder is written with a small model that shows it.
    Exit status: 0 if all results are right, 3 if one differs, 1 for an error.
    """
    if input_files:
        refuse_beside("--input", "runs", "seed", "dims")
    if device is not None:
        refuse_beside("--device", "target")
    sizes = dict(_dim(text) for text in dims)
    run_check(model, target, options, input_files, output, runs, seed, sizes, device, as_json)


@cli.command()
@click.argument("model", metavar="MODEL")
@json_flag
@renamed("--format", "--json")
@click.option("-v", "--verbose", is_flag=True, help="Show reshapes, layouts of weights and all edges, too.")
@click.option(
    "--edges",
    is_flag=True,
    help="Show the best other scope of each edge, and what would flip the choice, instead.",
)
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="Path of the report; '-' is stdout (default)."
)
@functools.partial(_compiling, more_policies=("all",))
def explain(
    model: str,
    as_json: bool,
    verbose: bool,
    edges: bool,
    output: str,
    policy: str,
    target: str,
    options: CompileOptions,
) -> None:
    """Explain what MODEL (ONNX, MLIR or a compiled .vmfb) became: kernels, why not fewer, and what is left to IREE.

    With `--policy all`, compare the plans of all policies instead.
    """
    if edges and policy == "all":
        raise click.UsageError("--edges is about the plan of one policy")
    if edges:
        text = explain_edges(model, target, options, as_json=as_json, verbose=verbose)
    elif policy == "all":
        text = explain_policies(model, target, options, as_json)
    else:
        program = open_model(model, target, options)
        text = json.dumps(program.explain("json"), indent=2) if as_json else program.explain(verbose=verbose)
    if output == "-":
        click.echo(text)
        return
    try:
        Path(output).write_text(text + "\n")
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=output) from None


for command in (tune, tuning, cache_command, calibrate, doctor, targets, common(simulate)):
    cli.add_command(command)


def main() -> None:
    """The console entry point."""
    cli()


def _write_to_stdout(program: Program) -> None:
    if program.parameter_paths:
        raise OutputError(
            "a program with weights is several files", where="-", hint="give a file name with -o"
        )
    stream = sys.stdout.buffer
    stream.write(program.module_path.read_bytes())
    stream.flush()


def _dim(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not size.isdigit():
        raise click.BadParameter(f"'{text}' is not of the form NAME=SIZE", param_hint="--dim")
    return name, int(size)
