"""MLIR modules in this process: they can be parsed, run through passes, and inspected.

module = Module.parse(text)
for remark in module.run("builtin.module(func.func(tile-raise))"):
    print(remark)
print(module.to_text())
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.errors import IrError, ModelError, PassError, PythonPassError
from tilewright.ir.native import native
from tilewright.ir.opt import find_opt
from tilewright.system.workfolder import failure_folder

if TYPE_CHECKING:
    from tilewright import _native
    from tilewright.ir.rewriting import Pass


@dataclass(frozen=True)
class Diagnostic:
    """A message of a parser, verifier or pass, with its notes."""

    severity: str
    message: str
    location: str | None = None
    operation: str | None = None
    notes: tuple[Diagnostic, ...] = ()
    category: str | None = None
    """The pass that emitted an optimisation remark; `outcome` is then "missed", "passed", "failed" or "analysis"."""
    outcome: str | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Numbers that a caller may act on, by name."""

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        notes = "".join(f"\n  {note}" for note in self.notes)
        return f"{where}{self.severity}: {self.message}{notes}"


class Module:
    """A module of MLIR 22. Operations of dialects that MLIR 22 does not know pass through unchanged."""

    def __init__(self, handle: _native.NativeModule) -> None:
        self._handle = handle

    @staticmethod
    def parse(text: str, *, name: str = "module.mlir") -> Module:
        """Parses text. Raises `ModelError` with the position of the first error."""
        handle, diagnostics = native.NativeModule.parse(text, name)
        if handle is None:
            messages = [_diagnostic(d) for d in diagnostics]
            first = next((d for d in messages if d.severity == "error"), Diagnostic("error", "not a module"))
            raise ModelError(first.message, where=first.location or name)
        return Module(handle)

    @property
    def operation(self) -> _native.Operation:
        """The module as an operation, which can be walked and changed (docs/guide/python-ir.md).

        What is reached from it is valid until the next `run`.
        """
        return self._handle.operation

    @property
    def context(self) -> _native.Context:
        """The context of the module's types and attributes."""
        return self._handle.context

    def to_text(self, *, generic: bool = False, local_scope: bool = False, debug_info: bool = False) -> str:
        """Returns the module as text; IREE reads back the generic form.

        In local scope, nothing is hoisted out of the operations, and constants that are stored as resources lose their
        values.
        """
        return self._handle.text(generic, local_scope, debug_info)

    def run(self, pipeline: str | Pass, *, dump_directory: Path | None = None) -> list[Diagnostic]:
        """Runs a textual pipeline, or a pass written in Python, and returns its remarks and warnings.

        A pipeline is anchored on the op that it runs on: `builtin.module(...)`, or another op, and then it runs on
        every such op of the module. With `dump_directory`, the IR after every pass that changed it is written there.
        Raises `PassError` with the op and location at fault and a `tilewright-opt` command that reproduces the
        failure, or `PythonPassError` if a pass written in Python raises an exception or leaves invalid IR. The module
        then stays as the pass left it.
        """
        if not isinstance(pipeline, str):
            return self._run_python(pipeline, dump_directory)
        before = self.to_text(generic=True, debug_info=True)
        try:
            return self.run_unrecorded(pipeline, dump_directory=dump_directory)
        except PassError as error:
            error.reproducer = write_reproducer(pipeline, before, dump_directory)
            raise

    def run_unrecorded(
        self, pipeline: str, *, dump_directory: Path | None = None, verify_each: bool = True
    ) -> list[Diagnostic]:
        """Runs a pipeline like `run`, but writes no command that reproduces a failure.

        Without `verify_each`, the module is not verified after each pass, but only where a pipeline of Tilewright ends
        a phase. That takes a sixth off the time of its passes on large modules.
        """
        if dump_directory is not None:
            dump_directory.mkdir(parents=True, exist_ok=True)
        dump = str(dump_directory) if dump_directory else ""
        ok, raw, exception = self._handle.run(pipeline, dump, verify_each)
        diagnostics = [_diagnostic(d) for d in raw]
        if exception is not None:
            raise _python_pass_error(exception[0], _pass_error(diagnostics)) from exception[1]
        if not ok:
            raise _pass_error(diagnostics)
        return diagnostics

    def _run_python(self, python_pass: Pass, dump_directory: Path | None) -> list[Diagnostic]:
        try:
            return self.run_unrecorded(python_pass.register().pipeline, dump_directory=dump_directory)
        except PassError as error:
            error.message = f"pass '{python_pass.name}' left invalid IR: {error.message}"
            raise _python_pass_error(python_pass.name, error) from None

    def verify(self) -> None:
        """Raises `PassError` if an operation breaks a rule of its dialect."""
        ok, raw = self._handle.verify()
        if not ok:
            raise _pass_error([_diagnostic(d) for d in raw])

    def check_plan(self, plan: str) -> str:
        """Returns what is wrong with a plan (as JSON text) for this module, or "" for a valid plan. See
        `Plan.verify`."""
        return self._handle.check_plan(plan)[1]

    def clone(self) -> Module:
        """Returns an independent copy."""
        return Module(self._handle.clone())

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        try:
            return f"<tilewright.Module with {sum(1 for _ in self.operation.walk())} operations>"
        except IrError:
            return "<tilewright.Module, on which a pass runs>"


# The format in which MLIR's remark engine prints a remark.
_REMARK = re.compile(
    r'^\[(?P<outcome>\w+)\] \S+ \| Category:(?P<category>\S+) \|.*?Remark=(?:"(?P<text>.*?)"|(?P<word>\S+))(?: \||$)',
    re.DOTALL,
)


def _diagnostic(raw: _native.Diagnostic) -> Diagnostic:
    remark = _REMARK.match(raw.message)
    return Diagnostic(
        raw.severity,
        (remark["text"] or remark["word"]) if remark else raw.message,
        raw.location or None,
        raw.operation or None,
        tuple(_diagnostic(note) for note in raw.notes),
        category=remark["category"] if remark else None,
        outcome=remark["outcome"].lower() if remark else None,
        numbers=raw.numbers,
    )


def _pass_error(diagnostics: list[Diagnostic]) -> PassError:
    nothing_said = Diagnostic("error", "a pass failed without saying why")
    first = next((d for d in diagnostics if d.severity == "error"), nothing_said)
    return PassError(
        first.message,
        operation=first.operation,
        location=first.location,
        details="\n".join(str(d) for d in diagnostics),
        numbers=first.numbers,
    )


def _python_pass_error(name: str, error: PassError) -> PythonPassError:
    return PythonPassError(
        error.message,
        pass_name=name,
        operation=error.operation,
        location=error.location,
        details=error.details,
    )


def write_reproducer(
    pipeline: str, text: str, directory: Path | None, *, folder: Path | None = None
) -> str | None:
    """Saves the input of a failed pipeline and returns the command that runs it again, or None if saving fails.
    Without a `directory` the input is in a `failure_folder`, which later failures eventually remove.

    `folder` is temporary: files that the pipeline reads from it are saved as well, and files that it writes go
    elsewhere.
    """
    try:
        if directory is None:
            directory = failure_folder()
        path = directory / "failed-input.mlir"
        path.write_text(text)
        if folder is not None:
            for file in folder.iterdir():
                if str(file) in pipeline:
                    shutil.copyfile(file, directory / file.name)
            pipeline = pipeline.replace(str(folder), str(directory))
    except OSError:
        # The error itself matters more than the command that reproduces it.
        return None
    anchored = pipeline if pipeline.startswith("builtin.module(") else f"builtin.module({pipeline})"
    return shlex.join(
        [find_opt(), "--allow-unregistered-dialect", str(path), f"--pass-pipeline={anchored}", "-o", "-"]
    )
