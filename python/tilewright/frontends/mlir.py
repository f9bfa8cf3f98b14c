"""Front end for MLIR: torch, linalg, StableHLO and TOSA; IREE detects the dialect."""

from __future__ import annotations

from tilewright.frontends import ImportedModel
from tilewright.frontends.service import fix_mlir_dims, spell_out_torch
from tilewright.iree.compiler import IreeCompiler
from tilewright.records.dims import Sizes

_BYTECODE_MAGIC = b"ML\xefR"


def import_mlir(
    source: bytes, *, name: str, compiler: IreeCompiler, fixed: Sizes, entry: str | None
) -> ImportedModel:
    """Returns text or bytecode unchanged, except for torch ops that IREE would miscompute, and for `fixed` dims of the
    function `entry`. IREE's parser and input phase do everything else."""
    if fixed:
        source = fix_mlir_dims(compiler, source, fixed, entry=entry, name=name)
    may_miscompute = b"f16" in source or (b"aten.gelu" in source and b"tanh" in source)
    if b"aten." in source and may_miscompute:
        source = spell_out_torch(compiler, source)

    def again(sizes: Sizes, compiler: IreeCompiler) -> ImportedModel:
        return ImportedModel(source=fix_mlir_dims(compiler, source, sizes, entry=entry, name=name), name=name)

    return ImportedModel(source=source, name=name, again=again)


def looks_like_mlir(data: bytes) -> bool:
    """Returns True if the bytes begin like MLIR bytecode or text."""
    if data.startswith(_BYTECODE_MAGIC):
        return True
    try:
        head = data[:4096].decode("utf-8")
    except UnicodeDecodeError as error:
        # The end of the sample may lie inside a character.
        if error.start < 4090:
            return False
        head = data[: error.start].decode("utf-8")
    return "\0" not in head and any(
        word in head for word in ("module", "func.func", "//", "#map", '"builtin.')
    )
