"""A repeated workload as MLIR for IREE, with barriers that nothing is fused across.

`iree_tensor_ext.compute_barrier.start` is IREE's own op: no op moves or fuses across it, and it disappears before
commands are formed, so that all repetitions are dispatches of one command buffer. (`util.optimization_barrier` would
also prevent fusion, but it stays and makes the host wait at every one.)
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import onnx
from tilewright.frontends import ImportedModel, import_model
from tilewright.iree.compiler import IreeCompiler

from benchmarks.repetition import is_barrier

_IDENTITY = re.compile(
    r"(?P<result>%\S+) = torch\.operator \"onnx\.Identity\"\((?P<operand>%\S+)\) : "
    r"\((?P<type>!torch\.vtensor<\[(?P<dims>[\d,]*)\],(?P<element>\w+)>)\) -> !torch\.vtensor<[^>]*>(?: \{\})?"
)


def import_repeated(model: Path, *, iree: IreeCompiler, folder: Path) -> ImportedModel:
    """Imports an ONNX file and turns its barriers into IREE's."""
    imported = import_model(model, compiler=iree, directory=folder)
    barriers = sum(map(is_barrier, onnx.load(model, load_external_data=False).graph.node))
    if not barriers:
        return imported
    assert imported.listing is not None
    text, replaced = _IDENTITY.subn(_barrier, imported.listing)
    if replaced < barriers:
        raise RuntimeError(f"{barriers - replaced} barriers are lost in the importer's text")
    return replace(imported, source=text.encode())


def _barrier(identity: re.Match[str]) -> str:
    # torch.operator accepts only !torch.vtensor, and the barrier accepts only builtin tensors.
    name, operand, vtensor = identity["result"], identity["operand"], identity["type"]
    dims = "".join(f"{dim}x" for dim in identity["dims"].split(",") if dim)
    element = identity["element"].replace("si", "i")
    tensor = f"tensor<{dims}{element}>"
    before, after = f"%before_{name[1:]}", f"%after_{name[1:]}"
    return (
        f"{before} = torch_c.to_builtin_tensor {operand} : {vtensor} -> {tensor}\n"
        f'    {after} = "iree_tensor_ext.compute_barrier.start"({before}) : ({tensor}) -> {tensor}\n'
        f"    {name} = torch_c.from_builtin_tensor {after} : {tensor} -> {vtensor}"
    )
