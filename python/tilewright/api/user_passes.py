"""Passes of the user at the stages of our pipelines.

A compilation runs in a worker process. Where a pipeline reaches a stage with passes of the user, the worker sends its
module to the user's process, which runs the passes and sends it back. So a pass may be any Python function, use the
user's data, and stop in a debugger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import ir
from tilewright.errors import CompileError, PassError, PythonPassError
from tilewright.ir.module import Module
from tilewright.ir.native import native
from tilewright.ir.rewriting import as_pass
from tilewright.records.options import Stage, UserPass
from tilewright.worker import calls
from tilewright.worker.process import OnCall


def stage_options(stages: Sequence[str]) -> dict[str, str | list[str]]:
    """Returns the options that make a pipeline call back at stages."""
    return {f"at-{stage}": _name(stage) for stage in stages}


def register_stages(stages: Sequence[str]) -> None:
    """Registers, in a worker, the passes that `stage_options` names."""
    for stage in stages:
        native.register_pass(_name(stage), "builtin.module", _Exchange(stage))


def answer_calls(passes: Mapping[Stage, Sequence[UserPass]]) -> OnCall:
    """Returns the function that runs passes in this process when a worker's pipeline is at their stage."""

    def on_call(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        stage: Stage = header["stage"]
        module = Module.parse(blob.decode(), name=f"{stage}.mlir")
        for each in passes[stage]:
            run_user_pass(module, each)
        return {}, module.to_text(generic=True, debug_info=True).encode()

    return on_call


def run_user_pass(module: Module, given: UserPass) -> None:
    """Runs one pass of the user: a function, a `Pass`, or a pipeline as text.

    Raises `PythonPassError` for a function that fails, and `CompileError` for text that is no pipeline or fails.
    """
    if not isinstance(given, str):
        module.run(as_pass(given))
        return
    text = given if given.startswith("builtin.module(") else f"builtin.module({given})"
    try:
        module.run(text)
    except PythonPassError:
        raise
    except PassError as error:
        raise CompileError(
            f"the pass '{given}' failed: {error.message.splitlines()[0]}",
            operation=error.operation,
            location=error.location,
            details=error.details,
        ) from None


def describe_passes(passes: Mapping[Stage, Sequence[UserPass]]) -> tuple[str, ...]:
    """Returns a note for each stage with passes."""
    return tuple(
        f"passes of the caller ran on the {stage} module: {', '.join(map(_described, each))}"
        for stage, each in passes.items()
    )


def _described(given: UserPass) -> str:
    if isinstance(given, str):
        return given
    name = getattr(given, "name", None) or getattr(given, "__name__", type(given).__name__)
    return str(name)


class _Exchange:
    """A pass that replaces its module by what the user's process makes of it."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __call__(self, viewed: ir.OpView) -> None:
        module = viewed.operation
        text = module.print(generic=True, local_scope=False, debug_info=True)
        _, changed = calls.call({"stage": self._stage}, text.encode())
        with module.context:
            parsed = ir.Operation.parse(changed.decode())
        module.regions[0].take_body(parsed.regions[0])
        for name in list(module.attributes):
            if name not in parsed.attributes:
                del module.attributes[name]
        for name, value in parsed.attributes.items():
            module.attributes[name] = value


def _name(stage: str) -> str:
    return f"user-passes-at-{stage}"
