"""Files of a program, written so that none is left half done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tilewright.errors import OutputError
from tilewright.runtime.description import FileRecord, FileRecords, description_text
from tilewright.runtime.file_names import parameter_suffix, refuse_taken
from tilewright.runtime.held import HeldFile
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.staged import Staged
from tilewright.system.outputs import refuse_special


def save_files(
    path: Path,
    *,
    module: HeldFile,
    parameters: Mapping[str, HeldFile],
    metadata: Metadata,
    sources: Sequence[Path],
) -> Path:
    """Writes a module, and its weights and description beside it; returns the module's path. `sources` are files that
    weights must not replace. Raises `OutputError` if a file cannot be written; then all are as before."""
    target = path if path.suffix == ".vmfb" else path.with_name(path.name + ".vmfb")
    weights = {scope: target.with_name(target.stem + parameter_suffix(scope)) for scope in parameters}
    try:
        for file in (target, target.with_suffix(".json"), *weights.values()):
            refuse_special(file)
        refuse_taken(target, weights)
        _refuse_sources(weights, parameters, sources)
        staged = Staged(target.parent)
        try:
            digests = {scope: staged.copy(parameters[scope], weights[scope]) for scope in weights}
            records = FileRecords(
                FileRecord(module.size, staged.copy(module, target)),
                {scope: FileRecord(parameters[scope].size, digest) for scope, digest in digests.items()},
            )
            staged.write([description_text(metadata, records).encode()], target.with_suffix(".json"))
            staged.commit()
        finally:
            staged.discard()
    except OSError as error:
        size = sum(file.size for file in [*parameters.values(), module])
        raise OutputError(
            f"cannot be written ({error.strerror})",
            where=str(target),
            hint=f"it needs {size / 1e6:.1f} MB in a writable folder",
        ) from None
    return target


def export_file(path: Path, parts: Iterable[bytes | memoryview]) -> Path:
    """Writes the parts of an exported program; returns its path. Raises `OutputError` if it cannot be written."""
    target = path if path.suffix == ".twp" else path.with_name(path.name + ".twp")
    try:
        refuse_special(target)
        staged = Staged(target.parent)
        try:
            staged.write(parts, target)
            staged.commit()
        finally:
            staged.discard()
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(target)) from None
    return target


def _refuse_sources(
    weights: Mapping[str, Path], parameters: Mapping[str, HeldFile], sources: Sequence[Path]
) -> None:
    """Raises `OutputError` if weights would replace files that the program was compiled from."""
    for scope, file in weights.items():
        if not file.exists() or parameters[scope].path in sources:
            continue
        if any(source.exists() and file.samefile(source) for source in sources):
            raise OutputError(
                "the program was compiled from this file, and its own weights would replace it",
                where=str(file),
                hint="save under another name",
            )
