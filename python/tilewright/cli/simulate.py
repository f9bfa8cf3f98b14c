"""`tilewright simulate`: runs a kernel from a file on the simulated device."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.cli.group import duration, json_flag, read_standard_input, renamed
from tilewright.errors import InputError, ModelError, OutputError

if TYPE_CHECKING:
    from tilewright.records.signature import Array


@click.command()
@click.argument("module", metavar="FILE")
@click.option("--kernel", default="", help="Name of the kernel; may be left out if there is only one.")
@click.option("--grid", default="1", show_default=True, metavar="X[,Y[,Z]]", help="Number of blocks.")
@click.option("--block", default="", metavar="X[,Y[,Z]]", help="Threads per block; default: nvvm.maxntid.")
@click.option(
    "--binding",
    "bindings",
    multiple=True,
    metavar="FILE.npy|SHAPE:DTYPE[:SEED|:empty]",
    help="Next buffer: from a file, random from a seed (default 0), or never written, such as 512x768:f32:empty.",
)
@click.option("--constant", "constants", multiple=True, type=int, help="An i32 argument after the buffers.")
@click.option("--dynamic-shared", default=0, help="Bytes of dynamic shared memory.")
@click.option("--target", default="cuda:h200", show_default=True, help="A known GPU, or a JSON file.")
@click.option(
    "--save", "saves", multiple=True, metavar="N:FILE.npy", help="Save buffer N after the kernel has run."
)
@click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    callback=duration,
    help="End a kernel that takes longer than this.",
)
@renamed("--max-seconds", "--timeout")
@json_flag
def simulate(
    module: str,
    kernel: str,
    grid: str,
    block: str,
    bindings: tuple[str, ...],
    constants: tuple[int, ...],
    dynamic_shared: int,
    target: str,
    saves: tuple[str, ...],
    timeout: float,
    as_json: bool,
) -> None:
    """Run a kernel of FILE (MLIR, dialects llvm and nvvm; '-' is stdin) on a simulated GPU; exit 1 if it has a bug."""
    from tilewright.simulator.device import simulate as run

    arrays = [_binding(text) for text in bindings]
    wanted = [_save(text, len(arrays)) for text in saves]
    report = run(
        _read(module),
        kernel,
        _extents(grid),
        arrays,
        constants,
        target,
        empty=[index for index, text in enumerate(bindings) if text.endswith(":empty")],
        block=_extents(block),
        dynamic_shared_bytes=dynamic_shared,
        max_seconds=timeout,
    )
    click.echo(json.dumps(report.to_json(), indent=2) if as_json else report.summary())
    if report.faults:
        raise click.exceptions.Exit(1)
    for index, path in wanted:
        _write(arrays[index], path)


def _read(module: str) -> str:
    if module == "-":
        try:
            return read_standard_input("the kernel").decode()
        except UnicodeDecodeError as error:
            raise ModelError(f"cannot be read ({error})", where=module) from None
    try:
        return Path(module).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot be read ({error})", where=module) from None


def _extents(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"(\d+(,\d+){0,2})?", text):
        raise click.BadParameter(f"'{text}' is not of the form X[,Y[,Z]]")
    return tuple(int(part) for part in text.split(",") if part)


def _binding(text: str) -> Array:
    import numpy as np

    if text.endswith(".npy"):
        try:
            return np.array(np.load(text, allow_pickle=False), order="C")
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read ({error})", where=text) from None
    form = re.fullmatch(r"(\d+(?:x\d+)*):([a-z]+)(\d+)(?::(\d+|empty))?", text)
    kinds = {"f": "float", "i": "int", "u": "uint", "bf": "bfloat"}
    if not form or form[2] not in kinds or form[3] not in ("8", "16", "32", "64"):
        raise InputError(f"'{text}' is neither a .npy file nor SHAPE:DTYPE:SEED", hint="say 512x768:f32:0")
    import ml_dtypes  # noqa: F401 - registers bfloat16 with numpy

    shape = [int(size) for size in form[1].split("x")]
    dtype = np.dtype(kinds[form[2]] + form[3])
    if form[4] == "empty":
        return np.full(int(np.prod(shape)) * dtype.itemsize, 0xFF, np.uint8).view(dtype).reshape(shape)
    rng = np.random.default_rng(int(form[4] or 0))
    if form[2] in ("i", "u"):
        return rng.integers(0, 4, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _save(text: str, count: int) -> tuple[int, Path]:
    index, _, path = text.partition(":")
    if not index.isdigit() or int(index) >= count or not path:
        raise click.BadParameter(f"'{text}' is not N:FILE.npy with N a buffer", param_hint="--save")
    return int(index), Path(path)


def _write(array: Array, path: Path) -> None:
    import numpy as np

    try:
        np.save(path, array)
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None
