"""Programs as bytes, so that they can be pickled, for example to be sent to another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.runtime.description import read_description
from tilewright.runtime.file_names import beside, parameter_suffix
from tilewright.runtime.held import hold_module, hold_weights
from tilewright.runtime.program import Program
from tilewright.system.workfolder import WorkFolder

_NAME = "program.vmfb"


def packed(program: Program) -> dict[str, bytes]:
    """Returns the files that `Program.save` writes, by name."""
    with WorkFolder("pickle") as folder:
        program.save(folder / _NAME)
        return {file.name: file.read_bytes() for file in folder.iterdir()}


def unpacked(files: Mapping[str, bytes], sources: Sequence[Path], cache_notes: Sequence[str]) -> Program:
    """Returns the program whose files these are; it is loaded into the runtime at its first call.

    The files lie in a temporary folder as long as the program lives.
    """
    folder = WorkFolder("pickle")
    for name, content in files.items():
        (folder.path / name).write_bytes(content)
    module = folder.path / _NAME
    metadata, records = read_description(module.with_suffix(".json"))
    return Program(
        module=hold_module(module),
        parameters={
            scope: hold_weights(beside(module, parameter_suffix(scope))) for scope in records.parameters
        },
        metadata=metadata,
        keep_alive=folder,
        sources=sources,
        cache_notes=cache_notes,
    )
