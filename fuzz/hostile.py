"""Test with broken inputs: success or one clean error is right, everything else is a finding.

ONNX goes to `tilewright.compile` in a process with limited memory; MLIR goes to `tilewright-opt`. A crash in one of
MLIR's own parsers, or one that stock `mlir-opt` has on the same text, is an upstream bug, and is reported as such.
"""

from __future__ import annotations

import datetime
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tilewright.errors import InputError, TilewrightError
from tilewright.ir.opt import find_opt
from tilewright.system import lifeline
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import Worker, WorkerDied

from fuzz import CHECKOUT
from fuzz.drive import drive
from fuzz.hostile_mlir import hostile_text, samples
from fuzz.hostile_onnx import hostile_model
from fuzz.judge import goes_through_iree

LIMIT_SECONDS = 60
"""Seconds of processor time that an input may take; on a busy machine, a clock would also count what others do."""
_STALL_SECONDS = 900.0
"""Seconds after which an input that takes no processor time is a hang, too."""
MEMORY_BYTES = 8 << 30
"""Bytes of address space that a compiler may reserve; libraries of LLVM and IREE alone reserve more than they use."""
RESIDENT_BYTES = 2 << 30
"""Bytes of memory that a compiler may use."""
_MLIR_OPT = "/usr/lib/llvm-22/bin/mlir-opt"
# Sanitizers end tilewright-opt with an exit status instead of a signal, so their message identifies the crash.
_SANITIZER = re.compile(r"ERROR: (?:Address|Leak|Undefined)\w*Sanitizer|runtime error: ")

# This matches the innermost parser of an op in a stack dump.
_PARSER = re.compile(r"\b(mlir|tilewright)::[\w:]*Op::parse\b")

_PLACE = re.compile(r" ?\(/[^\s()]*\)?")
"""A place in a stack dump: a file of this machine and an address, which mean nothing on others."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One input, the mutation that made it, and its outcome."""

    seed: int
    mutation: str
    outcome: str
    """"accepted", "refused", "upstream", or the fault: "crash", "hang", "memory", "internal error", "several lines"."""
    message: str
    data: bytes
    suffix: str
    command: tuple[str, ...]
    """The command without the file's name."""

    @property
    def is_finding(self) -> bool:
        return self.outcome not in ("accepted", "refused", "upstream")


def bound_time(processes: Sequence[Path]) -> None:
    """Makes SIGXCPU end processes, given by their folders in /proc, that take the limit of time from now on."""
    for process in processes:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        used = (int(fields[11]) + int(fields[12])) // os.sysconf("SC_CLK_TCK")
        hard = resource.prlimit(int(process.name), resource.RLIMIT_CPU)[1]
        resource.prlimit(int(process.name), resource.RLIMIT_CPU, (used + LIMIT_SECONDS, hard))


def bound_memory(limit: int = MEMORY_BYTES) -> None:
    """Limits the address space of this process and of those it starts."""
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def feed(
    seeds: Sequence[int],
    *,
    jobs: int,
    corpus: Path | None,
    progress: Callable[[Case], None],
    seconds: float | None = None,
) -> list[Case]:
    """Feeds ONNX for even seeds and MLIR for odd ones, or ONNX for all if there is no folder of tests to change.

    With `seconds`, it feeds the first input and those that it reaches within that time."""
    if corpus is not None and not samples(corpus):
        raise InputError(
            "no lit tests are in it", where=str(corpus), hint="name the repository's folder test"
        )
    cases: list[Case] = []
    end = math.inf if seconds is None else time.monotonic() + seconds

    def done(case: Case | None) -> None:
        if case is not None:
            cases.append(case)
            progress(case)

    with WorkFolder("fuzz") as folder:

        def fed(seed: int, worker: Worker) -> Case | None:
            if seed != seeds[0] and time.monotonic() > end:
                return None
            if corpus is not None and seed % 2:
                return feed_opt(seed, corpus, folder)
            return feed_compiler(seed, worker)

        def process() -> Worker:
            return Worker(folder, module="fuzz.worker", search=(CHECKOUT,), limit_seconds=_STALL_SECONDS)

        drive(seeds, fed, jobs=jobs, process=process, done=done)
    return cases


def feed_compiler(seed: int, worker: Worker) -> Case:
    """Feeds an ONNX file to `tilewright.compile`."""
    mutation, data = hostile_model(seed)
    try:
        deploy = goes_through_iree(seed)
        answer, _, _ = worker.ask({"request": "fuzz.hostile:answer_feed", "deploy": deploy}, data)
        outcome, message = answer["outcome"], answer["message"]
    except WorkerDied as death:
        outcome, message = ("hang" if _is_hang(death.how) else "crash"), death.how
    return Case(
        seed=seed,
        mutation=mutation,
        outcome=outcome,
        message=message,
        data=data,
        suffix=".onnx",
        command=("tilewright", "compile", "--target", "x86-64-avx2", "-o", "/dev/null"),
    )


def _is_hang(death: str) -> bool:
    return "longer" in death or signal.SIGXCPU.name in death


def answer_feed(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Compiles in the worker, and answers with the outcome. Crashes of IREE itself become clean errors.

    Without `deploy` in the header, IREE's back end does not compile a model whose kernels are all ours.
    """
    from tilewright.api.compilation import compile
    from tilewright.frontends.onnx import parse

    bound_memory()
    bound_time(_processes())
    _forget_peaks()
    try:
        model = parse(blob, name="model.onnx")
        compile(model, "x86-64-avx2", threads=1, cache=False, deploy=header["deploy"])
    except TilewrightError as error:
        message = str(error)
        outcome = "several lines" if "\n" in message else "refused"
        if "bug in Tilewright" in message:
            outcome = "crash"
        if signal.SIGXCPU.name in message:
            outcome = "hang"
    except Exception as error:
        outcome, message = "internal error", f"{type(error).__name__}: {error}"
    else:
        outcome, message = "accepted", ""
    if (peak := _peak_bytes()) > RESIDENT_BYTES:
        outcome, message = "memory", f"took {peak / 2**30:.1f} GiB; {message}"
    return {"outcome": outcome, "message": message}, b""


def _processes() -> list[Path]:
    """Returns the folders in /proc of this process and of those that it started."""
    own = Path(f"/proc/{os.getpid()}")
    children = (own / "task" / own.name / "children").read_text().split()
    return [own, *(Path("/proc") / child for child in children)]


def _forget_peaks() -> None:
    for process in _processes():
        (process / "clear_refs").write_text("5")


def _peak_bytes() -> int:
    """Returns the most memory that one of the processes has used since `_forget_peaks`."""
    found = []
    for process in _processes():
        line = re.search(r"^VmHWM:\s*(\d+) kB", (process / "status").read_text(), re.MULTILINE)
        found.append(int(line[1]) * 1024 if line else 0)
    return max(found)


def feed_opt(seed: int, corpus: Path, folder: Path) -> Case:
    """Feeds MLIR to `tilewright-opt`."""
    mutation, arguments, text = hostile_text(seed, corpus)
    # Bytes that are not valid UTF-8 are intended.
    data = text.encode("latin-1", errors="replace") if "flip_bytes" in mutation else text.encode()
    path = folder / f"{seed}.mlir"
    path.write_bytes(data)
    opt = _opt()
    outcome, message = _run([opt, str(path), *arguments], folder)
    if outcome in ("crash", "hang") and _upstream_fails(path, arguments, folder):
        outcome = "upstream"
    path.unlink()
    return Case(
        seed=seed,
        mutation=mutation,
        outcome=outcome,
        message=message,
        data=data,
        suffix=".mlir",
        command=(opt, *arguments),
    )


def _opt() -> str:
    tools = os.environ.get("TILEWRIGHT_TOOLS")
    return str(Path(tools) / "tilewright-opt") if tools else find_opt()


def _run(command: Sequence[str], folder: Path) -> tuple[str, str]:
    # A sanitizer's shadow memory exceeds any limit; sanitizers have a limit of their own.
    sanitized = "ASAN_OPTIONS" in os.environ
    try:
        done = lifeline.run(
            command,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            timeout=_STALL_SECONDS,
            preexec_fn=partial(_bound_program, None if sanitized else RESIDENT_BYTES),
        )
    except subprocess.TimeoutExpired:
        return "hang", f"took longer than {_STALL_SECONDS:g} s"
    log = done.stderr
    if (parser := _PARSER.search(log)) is not None and parser[1] == "mlir":
        return "upstream", parser[0]
    if (reported := _SANITIZER.search(log)) is not None:
        return "crash", " ".join(log[reported.start() :].split())[:1500]
    if done.returncode == -signal.SIGXCPU:
        return "hang", f"took longer than {LIMIT_SECONDS} s of processor time"
    if done.returncode < 0:
        return "crash", f"died by {signal.Signals(-done.returncode).name}: {_frames(log)}"
    if done.returncode and "error" not in log:
        return "internal error", f"exit status {done.returncode} without an error"
    return ("refused" if done.returncode else "accepted"), ""


def _bound_program(memory: int | None) -> None:
    """Limits this process, which is about to become a program."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))
    if memory is not None:
        bound_memory(memory)


def _frames(log: str) -> str:
    """Returns our functions in a stack dump, innermost first, or the reason that LLVM gave."""
    fatal = re.search(r"LLVM ERROR: .*|terminate called.*|Assertion.*", log)
    frames = re.findall(r"^ *#\d+ \S+ (.*)", log, re.MULTILINE)
    return " ".join([fatal[0] if fatal else "", *[frame[:160] for frame in frames[3:9]]])


def _upstream_fails(path: Path, arguments: Sequence[str], folder: Path) -> bool:
    """Returns True if stock mlir-opt fails as well, without our dialect and passes, on the parts that it can read."""
    if shutil.which(_MLIR_OPT) is None:
        return False
    ours = [argument for argument in arguments if "tile" not in argument]
    outcome, _ = _run([_MLIR_OPT, "--allow-unregistered-dialect", str(path), *ours], folder)
    return outcome in ("crash", "hang")


def summarize(cases: Sequence[Case], *, seconds: float) -> dict[str, Any]:
    """Returns the number of cases by outcome, and by outcome and kind of input; `seconds` is what they took."""
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "seeds": [min(case.seed for case in cases), max(case.seed for case in cases) + 1],
        "seconds": round(seconds),
        "inputs": len(cases),
        "outcomes": dict(Counter(case.outcome for case in cases)),
        "by_kind": {
            kind: dict(Counter(case.outcome for case in cases if case.suffix == kind))
            for kind in sorted({case.suffix for case in cases})
        },
        "findings": [
            {
                "seed": case.seed,
                "mutation": case.mutation,
                "outcome": case.outcome,
                "message": _PLACE.sub("", case.message),
            }
            for case in cases
            if case.is_finding or case.outcome == "upstream"
        ],
    }
