"""The process in which the compilers run: `python -m tilewright.worker`.

Requests arrive on stdin, answers leave on stdout; see `tilewright.worker.wire`. The arguments are open files: the
lifeline (`tilewright.system.lifeline`), and the record of the current step (`tilewright.worker.doing`). Modules to
import before the first request arrives may follow.

A request names the function that answers it, such as "tilewright.iree.service:list_functions". The process imports
that module at its first request, so this package does not depend on the packages that use it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

from tilewright.errors import PassError
from tilewright.ir.native import native
from tilewright.system import lifeline
from tilewright.worker import calls, doing
from tilewright.worker.wire import read_message, write_message

Handler: TypeAlias = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]
"""A function that answers requests: it takes and returns a header and bytes."""


def main(*packages: str) -> None:
    """Answers requests on stdin until it closes, with functions of this package and of the given packages."""
    native.describe_crashes()
    if len(sys.argv) >= 3:
        lifeline.hold_on(int(sys.argv[1]))
        doing.note_in(int(sys.argv[2]))
    requests = sys.stdin.buffer
    # The output of libraries must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for module in sys.argv[3:]:
        with contextlib.suppress(ImportError):  # the request that needs it says so
            importlib.import_module(module)
    serve(requests, answers, packages=("tilewright", *packages))


def serve(requests: IO[bytes], answers: IO[bytes], *, packages: Sequence[str]) -> None:
    """Answers every request until the stream ends; a request that fails is answered as well."""
    calls.connect(requests, answers)
    while (message := read_message(requests)) is not None:
        header, blob = message
        _work_in(**header.pop("surroundings"))
        try:
            answer, result = find_handler(header["request"], packages)(header, blob)
        except PassError as error:
            fields = ("message", "operation", "location", "details", "reproducer", "numbers")
            answer, result = {"ok": False, "pass_error": {name: getattr(error, name) for name in fields}}, b""
        except Exception as error:
            trace = traceback.format_exc()
            answer, result = {"ok": False, "error": f"{error}" or type(error).__name__, "trace": trace}, b""
        write_message(answers, answer, result)


def find_handler(name: str, packages: Sequence[str]) -> Handler:
    """Imports the function that a request names, as "module:function". Raises `ValueError` if it is in no known
    package."""
    module, _, function = name.partition(":")
    if not function or module.partition(".")[0] not in packages:
        raise ValueError(f"'{name}' does not name a function of {' or '.join(packages)}")
    handler: Handler = getattr(importlib.import_module(module), function)
    return handler


def _work_in(*, environment: dict[str, str], directory: str | None) -> None:
    """Sets the environment and the directory that a process started for this request alone would have."""
    search = os.environ["PYTHONPATH"]
    os.environ.clear()
    os.environ.update(environment, PYTHONPATH=search)
    if directory is not None and directory != str(Path.cwd()):
        os.chdir(directory)
    tempfile.tempdir = None  # makes tempfile read the variable again
