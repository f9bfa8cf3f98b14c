"""The worker's side of IREE: its compiler as a library, driven through the C API.

IREE runs in a process of its own because some user inputs kill it: IREE 3.13 dies by SIGSEGV on an operation of an
unknown dialect or on deeply nested text, exits the process on a bad target CPU, and prints some errors (a missing
object, a failed link) only on stderr. Besides, the flags for generic printing are global to the process that holds the
library, and would affect a user's own use of `iree.compiler`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

from tilewright.iree import static_onnx
from tilewright.worker.doing import doing

# IREE prints modules in the only form that another version of MLIR reads back without loss.
_PRINTING = ("--mlir-print-op-generic", "--mlir-print-local-scope", "--mlir-print-debuginfo")
_PHASES = (
    "input",
    "abi",
    "preprocessing",
    "global-optimization",
    "dispatch-creation",
    "flow",
    "stream",
    "executable-sources",
    "executable-configurations",
    "executable-targets",
    "hal",
    "vm",
    "end",
)
"""Phases of IREE 3.13's pipeline, in order (`iree-compile --help`). They run one by one, so that a message can name
the phase that hangs."""
_SEVERITIES = ("note", "warning", "error", "remark")


def compile_between_phases(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Runs IREE's pipeline between two phases; the answer is a module as text, or a VM module.

    A pipeline that fails without a verifier runs again with one, whose diagnostics say more.
    """
    verifies = header["verifies"]
    diagnostics: list[dict[str, str]] = []
    result = None
    if header["is_static_onnx"]:
        result = _run_pipeline(header, blob, diagnostics, first=static_onnx.PIPELINE, verifies=verifies)
        result = result if result is not None and static_onnx.is_lowered(result) else None
    for verified in dict.fromkeys((verifies, True)):
        if result is None:
            diagnostics.clear()
            result = _run_pipeline(header, blob, diagnostics, verifies=verified)
    return {"ok": result is not None, "diagnostics": diagnostics}, result or b""


def list_functions(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Lists the public functions of a module with the types and names of their arguments and results.

    A name is "" where there is none. JAX writes those of arguments as locations and those of results as attributes.
    """
    from iree.compiler import ir

    functions = {}
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        for operation in ir.Module.parse(blob).body.operations:
            attributes = operation.operation.attributes
            if operation.operation.name != "func.func" or not is_public(attributes):
                continue
            kind = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
            functions[ir.StringAttr(attributes["sym_name"]).value] = {
                "inputs": [str(t) for t in kind.inputs],
                "outputs": [str(t) for t in kind.results],
                "input_names": argument_names(operation.operation.regions[0]),
                "output_names": _result_names(attributes, len(kind.results)),
            }
    return {"ok": True, "functions": functions}, b""


def is_public(attributes: Any) -> bool:
    from iree.compiler import ir

    return "sym_visibility" not in attributes or ir.StringAttr(attributes["sym_visibility"]).value == "public"


def argument_names(body: Any) -> list[str]:
    """Returns the names in the locations of a function's arguments: a for `%arg0: tensor<4xf32> loc("a")`."""
    if not len(body.blocks):
        return []
    found = [re.match(r'loc\("([^"]*)"[()]', str(argument.location)) for argument in body.blocks[0].arguments]
    return [match[1] if match else "" for match in found]


def _result_names(attributes: Any, count: int) -> list[str]:
    from iree.compiler import ir

    if "res_attrs" not in attributes:
        return [""] * count
    each = [ir.DictAttr(one) for one in ir.ArrayAttr(attributes["res_attrs"])]
    return [ir.StringAttr(one["jax.result_info"]).value if "jax.result_info" in one else "" for one in each]


def _run_pipeline(
    header: dict[str, Any],
    blob: bytes,
    diagnostics: list[dict[str, str]],
    *,
    verifies: bool,
    first: str | None = None,
) -> bytes | None:
    """Runs the passes `first`, and IREE's pipeline between two phases; None if either fails.

    `verifies` runs MLIR's verifier after every pass that changes the module.
    """
    from iree.compiler.api import ctypes_dl as api

    library = api._dylib
    _set_up_once(api, header["process_flags"])

    callback_type = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

    @callback_type  # type: ignore[untyped-decorator]
    def collect(severity: int, message: int, size: int, _user: int | None) -> None:
        text = ctypes.string_at(message, size).decode(errors="replace")
        diagnostics.append({"severity": _SEVERITIES[severity], "message": text})

    with api.Session() as session:
        session.set_flags(*header["flags"])
        doing("IREE's parser")
        # IREE parses a null-terminated buffer in place; bytecode must not be terminated.
        buffer = blob if blob[:4] == b"ML\xefR" else blob + b"\0"
        invocation = session.invocation()
        try:
            enable = library.ireeCompilerInvocationEnableCallbackDiagnostics
            enable.argtypes = [ctypes.c_void_p, ctypes.c_int, callback_type, ctypes.c_void_p]
            enable.restype = None
            enable(invocation._inv_p, 0, collect, None)
            verify = library.ireeCompilerInvocationSetVerifyIR
            verify.argtypes = [ctypes.c_void_p, ctypes.c_bool]
            verify.restype = None
            verify(invocation._inv_p, verifies)
            if not invocation.parse_source(
                api.Source.wrap_buffer(session, buffer, buffer_name=header["name"])
            ):
                return None
            if first is not None:
                doing("IREE's lowering of ONNX")
                if not invocation.execute_text_pass_pipeline(first):
                    return None
            if not _run_phases(library, invocation, header["from"], header["to"]):
                return None
            with api.Output.open_membuffer() as output:
                if header["to"] is None:
                    invocation.output_vm_bytecode(output)
                else:
                    invocation.output_ir(output)
                return bytes(output.map_memory())
        finally:
            invocation.close()


def _run_phases(library: Any, invocation: Any, start: str | None, stop: str | None) -> bool:
    """Runs the pipeline from behind the phase `start` (None: from the beginning) through the phase `stop` (None: to
    the end)."""
    for end in ("From", "To"):
        choose = getattr(library, f"ireeCompilerInvocationSetCompile{end}Phase")
        choose.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        choose.restype = None
    first = 0 if start is None else _PHASES.index(start) + 1
    last = _PHASES.index(stop or "end")
    for number in range(first, last + 1):
        doing(f"IREE's phase '{_PHASES[number]}'")
        if number > 0:
            library.ireeCompilerInvocationSetCompileFromPhase(invocation._inv_p, _PHASES[number - 1].encode())
        library.ireeCompilerInvocationSetCompileToPhase(invocation._inv_p, _PHASES[number].encode())
        if not invocation.execute():
            return False
    return True


_is_set_up = False


def _set_up_once(api: Any, flags: Sequence[str]) -> None:
    """Sets IREE's flags of the process, which only its first request can do."""
    global _is_set_up
    if not _is_set_up:
        api._initializeGlobalCL("tilewright", *_PRINTING, *flags)
        _is_set_up = True
    elif flags:
        raise RuntimeError(f"the process runs with other flags than {' '.join(flags)}")
