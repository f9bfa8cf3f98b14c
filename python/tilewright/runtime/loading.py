"""Loading of saved programs."""

from __future__ import annotations

import contextlib
import os
from operator import index
from pathlib import Path
from typing import SupportsIndex

from tilewright.errors import ProgramError
from tilewright.runtime.description import read_description
from tilewright.runtime.file_names import beside, parameter_suffix
from tilewright.runtime.gpu_fit import NotResidentError, has_gpu, refuse_smaller_gpu
from tilewright.runtime.held import HeldFile, hold_module, hold_weights
from tilewright.runtime.interface import read_interface
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.program import Program
from tilewright.system.cores import MOST_THREADS

WITHOUT_BARRIERS = ".without-barriers.vmfb"
"""End of the name of a program without grid barriers, in place of ".vmfb". It lies beside the program with them, for
GPUs that cannot run all blocks of a kernel at once."""


def load(path: str | os.PathLike[str], *, threads: int | None = None, verify: bool = True) -> Program:
    """Loads what `Program.save` wrote.

    A module is native code: load only what you would run. The weights and the description lie beside the module under
    its own name, so the files can be copied and renamed together; where `path` is a link they may lie beside the file
    that it points to. A .vmfb without its .json also loads, if it has no weights, but nothing is known about its
    kernels.

    If a kernel for a GPU has grid barriers, and its blocks are not all resident there at once, the program
    NAME.without-barriers.vmfb is loaded instead, if it lies beside NAME.vmfb.

    Arguments:
        path: Path of the .vmfb.
        threads: Number of threads to run it on, instead of the number that it was compiled for.
        verify: True to hash the weights, which ensures that they are those the module was compiled with. If False,
            only their sizes are checked, and weights without a .json are accepted unchecked. The module and the
            description are always verified.

    Raises:
        ProgramError: A file is missing, damaged, or not the one that was saved with the others; or this machine cannot
            run the program.
    """
    given = Path(path)
    if not given.is_file():
        raise ProgramError("no such file", where=str(given), hint="give the path of a .vmfb")
    if threads is not None and not (
        isinstance(threads, SupportsIndex) and 1 <= index(threads) <= MOST_THREADS
    ):
        raise ProgramError(
            f"threads={threads!r} is not possible",
            hint=f"IREE's CPU runtime takes 1 to {MOST_THREADS} threads",
        )
    _refuse_model(given)
    module = hold_module(given)
    description = beside(module.path, ".json")
    if not description.is_file():
        return _load_bare(module, description, threads=threads or 1, verify=verify)
    metadata, records = read_description(description)
    other_module = f"it is not the module that {description.name} describes"
    records.module.require(module, otherwise=other_module, verify=True)
    weights = {}
    for scope, record in records.parameters.items():
        weights[scope] = hold_weights(beside(module.path, parameter_suffix(scope)))
        other_weights = f"it does not contain the weights of {module.path.name}"
        record.require(weights[scope], otherwise=other_weights, verify=verify)
    if threads is not None and threads != metadata.threads:
        metadata = Metadata.from_json({**metadata.to_json(), "threads": index(threads)})
    program = Program(module=module, parameters=weights, metadata=metadata)
    try:
        if metadata.kind.in_process or (program.runtime == "direct" and has_gpu()):
            program.load()
        else:
            refuse_smaller_gpu(metadata)
    except NotResidentError as error:
        variant = beside(module.path, WITHOUT_BARRIERS)
        if not variant.is_file():
            error.hint = f"compile it with --no-grid-sync, here or beside it as {variant.name}"
            raise
        program = load(variant, threads=threads, verify=verify)
        program.add_note(f"taken instead of {module.path.name}, because {error.message}")
    return program


_MODULE_STARTS = b"PK\x03\x04"
"""IREE writes modules as archives that unzip lists, too."""


def _refuse_model(path: Path) -> None:
    """Raises `ProgramError` for a file that is no module, such as a model that was not compiled yet."""
    if path.suffix == ".vmfb":
        return  # what is wrong with it is found later, and said more precisely
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(_MODULE_STARTS)) != _MODULE_STARTS:
            raise ProgramError(
                "it is no compiled module",
                where=str(path),
                hint="load takes the .vmfb that Program.save wrote; tilewright.compile takes a model",
            )


def _load_bare(module: HeldFile, description: Path, *, threads: int, verify: bool) -> Program:
    weights = beside(module.path, parameter_suffix("model"))
    parameters = {"model": weights} if weights.is_file() else {}
    interface = read_interface(module, entry=None)
    if parameters and verify:
        raise ProgramError(
            f"it is missing, so nothing says whether {weights.name} holds the weights of {module.path.name}",
            where=str(description),
            hint="put it beside the .vmfb, or give verify=False to tilewright.load",
        )
    metadata = Metadata(
        target="unknown",
        threads=threads,
        entry=interface.entry,
        signature=interface.signature,
        notes=(f"{description.name} is missing, so nothing is known of its kernels",),
    )
    program = Program(module=module, parameters=parameters, metadata=metadata)
    program.load()
    return program
