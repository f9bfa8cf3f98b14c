"""The errors that Tilewright raises on purpose.

A message says what is wrong, where, and what to do; `str(error)` is one line. Any other exception is a bug in
Tilewright.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping


class TilewrightError(Exception):
    """Base class of all errors; it holds what is wrong, where (in the model or the file system), and a hint what to
    do."""

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}; {self.hint}" if self.hint else text


class ModelError(TilewrightError):
    """The model cannot be read, is malformed, or is of a kind that no front end supports."""


class CompileError(TilewrightError):
    """A compiler stage refused the model or failed on it.

    `operation` is the op at fault and `location` its position in the model, as far as the compiler knows them.
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str | None = None,
        location: str | None = None,
        hint: str | None = None,
        details: str = "",
    ) -> None:
        super().__init__(message, where=location, hint=hint)
        self.operation = operation
        self.location = location
        self.details = details
        """All output of the compiler, for a bug report; it may be long."""


class CompileTimeoutError(CompileError):
    """A compilation took longer than `timeout`; the message names the step, and the pass or phase, that was
    running."""


class IreeError(CompileError):
    """IREE's compiler refused the model, or its process died."""


class PassError(CompileError):
    """One of Tilewright's own passes failed.

    `reproducer` is the command line that reproduces the failure. `numbers` are those that a caller may act on, by name:
    "excess_block_bytes" is the number of bytes by which a kernel exceeds the shared memory of its target.
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str | None = None,
        location: str | None = None,
        hint: str | None = None,
        details: str = "",
        reproducer: str | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(message, operation=operation, location=location, hint=hint, details=details)
        self.reproducer = reproducer
        self.numbers = dict(numbers or {})


class PythonPassError(CompileError):
    """A pass written in Python raised an exception, which is the `__cause__`, or left invalid IR."""

    def __init__(
        self,
        message: str,
        *,
        pass_name: str,
        operation: str | None = None,
        location: str | None = None,
        details: str = "",
    ) -> None:
        super().__init__(message, operation=operation, location=location, details=details)
        self.pass_name = pass_name


class IrError(CompileError):
    """IR that Python builds is invalid, or an object of it is used after it is gone."""


class VerificationError(CompileError):
    """A program computes other numbers than its model, or cannot be compared with it."""


class PlanError(TilewrightError):
    """A plan is malformed or breaks one of the rules of plans."""


class TuningError(TilewrightError):
    """A tuning database cannot be used."""


class TargetError(TilewrightError):
    """There is no such target, or its description is malformed."""


class CalibrationError(TilewrightError):
    """Measurements do not describe a machine: their repetitions disagree, or results are of something else."""


class InputError(TilewrightError):
    """A program was called with the wrong number of arrays, or an array of the wrong shape or dtype."""


class ProgramError(TilewrightError):
    """A saved program cannot be loaded, or failed while running."""


class SimulationError(TilewrightError):
    """A kernel cannot be simulated, or the simulated device found a bug in it."""


class OutputError(TilewrightError):
    """A result cannot be written."""


@contextlib.contextmanager
def temporary_files() -> Iterator[None]:
    """Turns an `OSError` inside the `with` block, which writes temporary files, into an `OutputError`."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"an intermediate file cannot be written ({error.strerror})",
            where=str(error.filename or tempfile.gettempdir()),
            hint="free disk space, or set TMPDIR to another folder",
        ) from error


class VersionError(TilewrightError):
    """The version of an installed package is not the one that this release was built for."""


class NativeError(TilewrightError):
    """The extension module is missing or cannot be loaded."""
