"""`tilewright run`: runs a model on this machine or on a simulated GPU, or times it beside peers."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from tilewright.cli.group import read_standard_input, tell
from tilewright.cli.model import compile_model, progress, refuse_compiled
from tilewright.errors import InputError, OutputError
from tilewright.records.options import CompileOptions
from tilewright.system.cores import spell_threads
from tilewright.system.outputs import refuse_special
from tilewright.system.workfolder import WorkFolder

if TYPE_CHECKING:
    from tilewright.compare.comparison import Comparison
    from tilewright.records.signature import Array, Signature
    from tilewright.runtime.program import Program


def run_simulated(
    model: str,
    device: str,
    options: CompileOptions,
    files: tuple[Path, ...],
    output: Path | None,
    seed: int,
    dims: dict[str, int],
) -> None:
    """Compiles for the GPU, runs the kernels on the simulated GPU and prints its counts to stdout."""
    from tilewright.simulator.programs import simulate_program, simulated_target

    target = simulated_target(device)
    refuse_compiled(model, "a compiled program has no kernels to simulate")
    with WorkFolder("simulated") as folder:
        dump = options.dump_dir or folder
        program = compile_model(model, target, replace(options, dump_dir=dump))
        simulated = simulate_program(program, dump, arrays(program, files, seed, dims))
    for report in simulated.kernels:
        click.echo(report.summary(), err=str(output) == "-")
    if simulated.outputs is None:
        left = ", ".join(map(str, simulated.invented))
        tell(f"note: no outputs, because {f'random numbers replace {left}' if left else 'no kernel is ours'}")
        return
    print_outputs(program, simulated.outputs, to_stderr=str(output) == "-")
    save_outputs(program, simulated.outputs, output)


def arrays(program: Program, files: tuple[Path, ...], seed: int, dims: dict[str, int]) -> list[Array]:
    from tilewright.runtime.inputs import random_inputs

    if files:
        return read_inputs(files, program.signature)
    if program.signature is None:
        raise InputError("the module does not describe its inputs", hint="give them with --input")
    return random_inputs(program.signature, seed=seed, dims=dims)


def _output_names(program: Program, count: int) -> list[str]:
    if program.signature is None:
        return [f"output{index}" for index in range(count)]
    return [spec.name for spec in program.signature.outputs]


def print_outputs(program: Program, outputs: list[Array], *, to_stderr: bool = False) -> None:
    import numpy as np

    for name, array in zip(_output_names(program, len(outputs)), outputs, strict=True):
        shape = "x".join(str(size) for size in array.shape) or "scalar"
        summary = "empty"
        if array.size:
            wide = array.astype(np.float64)
            summary = f"min {wide.min():.6g}, mean {wide.mean():.6g}, max {wide.max():.6g}"
        click.echo(f"{name}: {array.dtype}[{shape}], {summary}", err=to_stderr)


def save_outputs(program: Program, outputs: list[Array], path: Path | None) -> None:
    if path is None:
        return
    arrays = dict(zip(_output_names(program, len(outputs)), outputs, strict=True))
    if str(path) == "-":
        archive = io.BytesIO()
        _write_npz(archive, arrays)
        sys.stdout.buffer.write(archive.getvalue())
        sys.stdout.buffer.flush()
        return
    refuse_special(path)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            _write_npz(file, arrays)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None


def _write_npz(file: IO[bytes], arrays: dict[str, Array]) -> None:
    """Writes the format of `numpy.savez`, which cannot store an array called "file"."""
    import numpy as np

    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array)


def read_inputs(files: tuple[Path, ...], signature: Signature | None) -> list[Array]:
    """Reads arrays from files; '-' is standard input."""
    from tilewright.runtime.inputs import read_arrays

    if Path("-") not in files:
        return read_arrays(files, signature)
    with WorkFolder("inputs") as folder:
        given = folder / "standard-input"
        given.write_bytes(read_standard_input("an input"))
        try:
            return read_arrays([given if str(file) == "-" else file for file in files], signature)
        except InputError as error:
            where = "-" if error.where == str(given) else error.where
            raise InputError(error.message, where=where, hint=error.hint) from None


def run_comparison(
    model: str,
    target: str,
    options: CompileOptions,
    input_files: tuple[Path, ...],
    output: Path | None,
    seed: int,
    seconds: float,
    as_json: bool,
) -> None:
    from tilewright.compare.comparison import compare

    refuse_compiled(model, "a compiled program cannot be compared")
    if model == "-":
        raise InputError(
            "only a model in a file can be compared", where=model, hint="give the ONNX or MLIR file"
        )
    inputs = read_inputs(input_files, None) if input_files else None
    with progress() as step:
        result = compare(
            Path(model), target, options=options, inputs=inputs, seconds=seconds, seed=seed, progress=step
        )
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=2))
    else:
        _print_comparison(model, result, to_stderr=str(output) == "-")
    save_outputs(result.program, list(result.outputs), output)


def _print_comparison(model: str, result: Comparison, *, to_stderr: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"{model}, {spell_threads(result.threads)}, {result.turns} turns", title_justify="left"
    )
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
    stream = sys.stderr if to_stderr else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else 140)
    console.print(table)
    for note in result.program.metadata.notes:
        console.print(f"note: {note}")
