"""The process in which the compilers run: `python -m tilewright.worker`.

Requests come in on stdin, answers go out on stdout; see `tilewright.worker.wire`. The arguments are open files: the
lifeline (`tilewright.system.lifeline`), and where to note what is being done (`tilewright.worker.doing`).
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

from tilewright.api import stitch
from tilewright.errors import PassError
from tilewright.ir.native import native
from tilewright.iree import service
from tilewright.system import lifeline
from tilewright.tuning import service as tuning_service
from tilewright.tuning import timer
from tilewright.worker import doing
from tilewright.worker.wire import read_message, write_message

Handler: TypeAlias = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]

HANDLERS: dict[str, Handler] = {
    "compile": service.compile_between_phases,
    "import_onnx": service.import_onnx,
    "list_functions": service.list_functions,
    "spell_out_torch": service.spell_out_torch,
    "stitch": stitch.answer,
    "passes": tuning_service.answer,
    "time": timer.answer,
}


def main() -> None:
    """Answers requests on stdin until it closes."""
    native.describe_crashes()
    if len(sys.argv) == 3:
        lifeline.hold_on(int(sys.argv[1]))
        doing.note_in(int(sys.argv[2]))
    requests = sys.stdin.buffer
    # Whatever libraries print must not end up among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(requests, answers)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers every request until the stream ends; a failed request is an answer, too."""
    while (message := read_message(requests)) is not None:
        header, blob = message
        _work_in(**header.pop("surroundings"))
        try:
            answer, result = HANDLERS[header["request"]](header, blob)
        except PassError as error:
            fields = ("message", "operation", "location", "details", "reproducer")
            answer, result = {"ok": False, "pass_error": {name: getattr(error, name) for name in fields}}, b""
        except Exception as error:
            trace = traceback.format_exc()
            answer, result = {"ok": False, "error": f"{error}" or type(error).__name__, "trace": trace}, b""
        write_message(answers, answer, result)


def _work_in(*, environment: dict[str, str], directory: str | None) -> None:
    """As a process would that is started for the request alone."""
    search = os.environ["PYTHONPATH"]
    os.environ.clear()
    os.environ.update(environment, PYTHONPATH=search)
    if directory is not None and directory != str(Path.cwd()):
        os.chdir(directory)
    tempfile.tempdir = None  # it follows the variable again
