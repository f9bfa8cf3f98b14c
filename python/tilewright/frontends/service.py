"""Requests of the front ends to the worker process, where IREE's libraries run.

Each function that sends a request stands next to the one that answers it.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import IreeError, ModelError
from tilewright.iree.compiler import IreeCompiler, request_failed
from tilewright.records.dims import Sizes


def import_onnx(compiler: IreeCompiler, stripped: bytes, *, scope: str) -> tuple[dict[str, Any], bytes]:
    """Imports a serialised ONNX model without its large initializers (see `frontends.onnx`); returns the answer's
    header and MLIR bytecode."""
    header = {"request": f"{__name__}:answer_import", "step": "the import of ONNX", "scope": scope}
    answer, module, _ = compiler.ask(header, stripped)
    if "refused" in answer:
        raise ModelError(**answer["refused"])
    if not answer["ok"]:
        raise request_failed(answer)
    return answer, module


def answer_import(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Imports a stripped ONNX model; see `onnx_importer`."""
    from tilewright.frontends.onnx_importer import import_stripped_model

    try:
        imported = import_stripped_model(blob, scope=header["scope"])
    except ModelError as error:
        return _refused(error), b""
    answer = {
        "ok": True,
        "function": imported.function,
        "keys": imported.keys,
        "inputs": imported.inputs,
        "outputs": imported.outputs,
        "listing": imported.listing,
    }
    return answer, imported.bytecode


def spell_out_torch(compiler: IreeCompiler, source: bytes) -> bytes:
    """Returns the module without torch ops that IREE miscomputes; see `torch_ops`."""
    header = {"request": f"{__name__}:answer_torch", "step": "the rewriting of ops of the torch dialect"}
    answer, module, _ = compiler.ask(header, source)
    return module if answer["ok"] else source


def answer_torch(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Rewrites torch ops that IREE miscomputes; see `torch_ops`."""
    from tilewright.frontends.rewrites import torch_ops

    return {"ok": True}, torch_ops.spell_out_torch(blob)


def fix_mlir_dims(
    compiler: IreeCompiler, source: bytes, sizes: Sizes, *, entry: str | None, name: str
) -> bytes:
    """Returns a module whose entry takes tensors of fixed sizes; see `fixed_dims`."""
    header = {
        "request": f"{__name__}:answer_fix",
        "step": "the fixing of dims",
        "sizes": dict(sizes),
        "entry": entry,
        "name": name,
    }
    answer, module, _ = compiler.ask(header, source)
    if "refused" in answer:
        raise ModelError(**answer["refused"])
    if not answer["ok"]:
        # An exception of IREE's parser is about the module; the compilation without sizes says more.
        raise IreeError(f"dims cannot be fixed: {answer['error']}", details=answer.get("trace", ""))
    return module


def answer_fix(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Fixes dims of a module; see `fixed_dims`."""
    from tilewright.frontends.fixed_dims import fix_mlir_dims as fix

    try:
        return {"ok": True}, fix(blob, header["sizes"], entry=header["entry"], name=header["name"])
    except ModelError as error:
        return _refused(error), b""


def _refused(error: ModelError) -> dict[str, Any]:
    """Returns the answer that makes the user's process raise an error."""
    return {
        "ok": False,
        "refused": {"message": error.message, "where": error.where, "hint": error.hint},
    }
