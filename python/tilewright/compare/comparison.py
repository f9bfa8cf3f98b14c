"""Compares a program with its peers, IREE alone at its best flags and ONNX Runtime, on the same threads and inputs.

Contenders run in turn, many times. A ratio is computed from the paired times of a turn, with a bootstrap confidence
interval, so that a machine that slows down affects both sides. A pause between contenders lets the threads of the last
one go to sleep: those of ONNX Runtime keep spinning for a while after a call and would slow the next contender.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.api.compilation import compile_with
from tilewright.api.progress import Progress
from tilewright.errors import CompileError, CompileTimeoutError, IreeError, ModelError
from tilewright.frontends import ImportedModel, import_model
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING, without_data_tiling
from tilewright.iree.flags import iree_flags
from tilewright.records.options import CompileOptions
from tilewright.records.signature import Array
from tilewright.records.targets import TargetChoice, resolve_targets
from tilewright.records.threads import thread_choices
from tilewright.runtime.cuda_session import CudaSession
from tilewright.runtime.direct import DirectSession
from tilewright.runtime.inputs import random_inputs
from tilewright.runtime.program import Program
from tilewright.runtime.session import Session
from tilewright.system.cores import available_cores
from tilewright.system.deadline import Deadline
from tilewright.system.idle import wait_until_idle
from tilewright.system.workfolder import WorkFolder
from tilewright.tuning.paired import Interval, paired_ratio
from tilewright.worker.process import Worker

# Candidate flag sets that may be best for IREE alone; `iree.flags` describes the wider search that selected them.
IREE_CANDIDATES: tuple[tuple[str, ...], ...] = (
    (DATA_TILING,),
    (),
    (DATA_TILING, "--iree-dispatch-creation-enable-aggressive-fusion"),
    (DATA_TILING, "--iree-llvmcpu-enable-ukernels=all"),
)
_LEAST_BURST_SECONDS = 0.002
_TRIALS = 8  # trials per candidate; the best one counts


@dataclass(frozen=True)
class Row:
    """Results of one contender."""

    name: str
    kernels: int | None
    """Kernels that a call launches; None if unknown."""
    seconds: float
    """Median seconds of a call."""
    speedup: Interval | None
    """Paired ratio of its time to ours: above 1, ours is faster. None for ours."""
    errors: tuple[float, ...] | None
    """Per output, the norm of the difference from float64 divided by the norm of float64; None without a reference."""
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        speedup = self.speedup
        return {
            "name": self.name,
            "kernels": self.kernels,
            "seconds": self.seconds,
            "speedup": [speedup.value, speedup.low, speedup.high] if speedup else None,
            "errors": list(self.errors) if self.errors is not None else None,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Comparison:
    """The whole table, with our row first."""

    rows: tuple[Row, ...]
    threads: int
    turns: int
    program: Program = field(repr=False)
    outputs: tuple[Array, ...] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"threads": self.threads, "turns": self.turns, "rows": [row.to_json() for row in self.rows]}


@dataclass
class _Contender:
    name: str
    call: Callable[[], list[Array]]
    kernels: int | None = None
    detail: str = ""
    flags: tuple[str, ...] = ()
    seconds: list[float] = field(default_factory=list)


def compare(
    model: str | Path,
    target: TargetChoice = "cpu",
    *,
    options: CompileOptions | None = None,
    inputs: Sequence[Array] | None = None,
    seconds: float = 10.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compiles a model with Tilewright and with IREE alone, and times both beside ONNX Runtime.

    `seconds` limits the timed part. ONNX Runtime and the float64 reference need an ONNX model with static shapes.
    """
    say = progress or (lambda step: None)
    options = options or CompileOptions()
    threads = thread_choices(options.threads or available_cores())[-1]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(WorkFolder("compare"))
        worker = stack.enter_context(Worker(folder))
        iree = IreeCompiler(worker)
        ours, program = _ours(model, target, options, threads, iree, folder / "dump", say)
        if program.signature is None:
            raise ModelError("its signature is unknown, so there is nothing to compare", where=str(model))
        arrays = list(inputs) if inputs is not None else random_inputs(program.signature, seed=seed)
        checked = program.signature.check_inputs(arrays)
        _prepare(ours, program, checked)
        flags = iree_flags(resolve_targets(target, threads=threads)[-1], host=target == "cpu")
        alone = _iree_alone(model, program, options, flags, checked, threads, worker, folder, say)
        if not options.iree_flags and alone.flags != (DATA_TILING,):
            # The ops that stay with IREE may be fastest with the flags that are best for IREE alone, so the faster of
            # both programs counts.
            say("with the flags of IREE alone")
            same = replace(options, iree_flags=as_extra_flags(alone.flags))
            other, other_program = _ours(model, target, same, threads, iree, folder / "dump-same-flags", say)
            _prepare(other, other_program, checked)
            other.detail += f", {alone.detail}"
            if _best(other) < _best(ours):
                ours, program = other, other_program
        contenders = [ours, alone]
        proto = _onnx_proto(model)
        reference = None
        if proto is not None:
            contenders += _onnx_runtime(model, program, checked, threads, say)
            say("computing the float64 reference")
            reference = _float64(proto, checked, say)
        say("timing")
        results = {c.name: c.call() for c in contenders}
        turns = _time_in_turn(contenders, seconds=seconds)
        rows = [_row(c, ours, reference, results[c.name]) for c in contenders]
        return Comparison(tuple(rows), threads, turns, program, tuple(results[ours.name]))


def _ours(
    model: str | Path,
    target: TargetChoice,
    options: CompileOptions,
    threads: int,
    iree: IreeCompiler,
    folder: Path,
    say: Progress,
) -> tuple[_Contender, Program]:
    dump = options.dump_dir or folder
    changed = replace(options, dump_dir=dump, threads=threads)
    program = compile_with(changed, model, target, progress=say)
    total = count_kernels(program, dump, iree)
    return _Contender("Tilewright", list, total, f"{len(program.kernels)} fused"), program


def count_kernels(program: Program, dump: Path, iree: IreeCompiler) -> int:
    """Counts the kernels that a call of a program launches, including IREE's own.

    `dump` is the folder that the program was dumped to.
    """
    phase = "3-stitched.mlir" if program.kernels else "2-preprocessing.mlir"
    flags = program.metadata.iree_flags
    stream = iree.resume((dump / phase).read_bytes(), "preprocessing", flags=flags, stop="stream")
    return count_dispatches(stream.decode())


def _prepare(ours: _Contender, program: Program, arrays: Sequence[Array]) -> None:
    """Loads the program and sets up a call like IREE's, on inputs that are checked outside the timed part."""
    runner, signature = program.runner(), program.signature
    if isinstance(runner, DirectSession | CudaSession):
        ours.call = lambda: runner(runner.checked(arrays))
    else:
        ours.call = lambda: runner(arrays, signature)


def as_extra_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Returns a candidate's flags as an addition to the default flags, which include data tiling."""
    added = tuple(flag for flag in flags if flag != DATA_TILING)
    return added if DATA_TILING in flags else (*added, f"{DATA_TILING}=false")


def _best(contender: _Contender) -> float:
    """Returns the contender's fastest time of a few trials."""
    calls = _calls_of_burst(contender)
    for _ in range(_TRIALS):
        _burst(contender, calls=calls)
    best = min(contender.seconds)
    contender.seconds.clear()
    return best


def _iree_alone(
    model: str | Path,
    program: Program,
    options: CompileOptions,
    flags: Sequence[str],
    arrays: Sequence[Array],
    threads: int,
    worker: Worker,
    folder: Path,
    say: Progress,
) -> _Contender:
    """Compiles the model with IREE alone under each candidate flag set that computes correctly; the fastest counts."""
    iree = IreeCompiler(worker)
    worker.deadline = Deadline(options.timeout)
    # The program's own parameter files do not fit, because their layout is the one that its kernels read.
    imported = import_model(model, compiler=iree, directory=folder)
    parameters = {**imported.parameters, **options.parameters}
    base = [flag for flag in flags if flag != DATA_TILING]
    front = iree.compile_to(imported.source, "preprocessing", flags=base, name=imported.name)
    is_tiled_rightly = without_data_tiling(front) is None
    candidates = [flags for flags in IREE_CANDIDATES if is_tiled_rightly or DATA_TILING not in flags]
    fastest: tuple[float, _Contender] | None = None
    failure: CompileError | None = None
    for number, candidate in enumerate(candidates):
        say(f"IREE alone, flags {number + 1} of {len(candidates)}")
        worker.deadline = Deadline(options.timeout)
        try:
            contender = _iree_with(
                imported, parameters, program, [*base, *candidate], arrays, threads, iree, folder, number
            )
        except (IreeError, CompileTimeoutError) as error:
            failure = error
            continue
        contender.flags = candidate
        contender.detail = " ".join(candidate) or "default flags"
        best = _best(contender)
        if fastest is None or best < fastest[0]:
            fastest = (best, contender)
    worker.deadline = Deadline(None)
    if fastest is None:
        assert failure is not None
        raise failure
    return fastest[1]


def _iree_with(
    imported: ImportedModel,
    parameters: Mapping[str, Path],
    program: Program,
    flags: Sequence[str],
    arrays: Sequence[Array],
    threads: int,
    iree: IreeCompiler,
    folder: Path,
    number: int,
) -> _Contender:
    module = folder / f"iree-{number}.vmfb"
    module.write_bytes(iree.compile(imported.source, flags=flags, name=imported.name))
    stream = iree.compile_to(imported.source, "stream", flags=flags, name=imported.name)
    session = Session(module, parameters, entry=program.metadata.entry, threads=threads)
    signature = program.signature
    return _Contender("IREE alone", lambda: session(arrays, signature), count_dispatches(stream))


def _onnx_proto(model: str | Path) -> Any | None:
    path = Path(model)
    if path.suffix != ".onnx":
        return None
    import onnx

    return onnx.load(path)


def _onnx_runtime(
    model: str | Path, program: Program, arrays: Sequence[Array], threads: int, say: Progress
) -> list[_Contender]:
    """Returns ONNX Runtime with the model; nothing if it is not installed or does not take the model."""
    try:
        import onnxruntime
    except ImportError:
        return []
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    assert program.signature is not None
    feeds = {spec.name: array for spec, array in zip(program.signature.inputs, arrays, strict=False)}
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        session.run(None, feeds)  # numpy has no type for some outputs, such as bf16
    except Exception as error:  # of many kinds without a common base
        say(f"ONNX Runtime does not take the model: {str(error).splitlines()[0]}")
        return []
    version = onnxruntime.__version__
    return [_Contender("ONNX Runtime", lambda: list(session.run(None, feeds)), detail=f"version {version}")]


def _float64(proto: Any, arrays: Sequence[Array], say: Progress) -> list[Array] | None:
    try:
        from tilewright.reference import oracle
    except ImportError:
        return None
    try:
        return oracle.float64_reference(proto, arrays)
    except Exception as error:  # of many kinds, from two evaluators
        say(f"no evaluator has the model in float64: {str(error).splitlines()[0]}")
        return None


def _time_in_turn(contenders: Sequence[_Contender], *, seconds: float) -> int:
    """Calls every contender once per turn until the time is up; the order rotates."""
    calls = {contender.name: _calls_of_burst(contender) for contender in contenders}
    deadline = time.perf_counter() + seconds
    turns = 0
    while turns < 5 or time.perf_counter() < deadline:
        for offset in range(len(contenders)):
            contender = contenders[(turns + offset) % len(contenders)]
            wait_until_idle()
            _burst(contender, calls=calls[contender.name])
        turns += 1
    return turns


def _calls_of_burst(contender: _Contender) -> int:
    _burst(contender, calls=1)
    return max(1, math.ceil(_LEAST_BURST_SECONDS / contender.seconds.pop()))


def _burst(contender: _Contender, *, calls: int) -> None:
    """Adds the mean time of `calls` calls, after one that warms up threads and caches."""
    contender.call()
    started = time.perf_counter()
    for _ in range(calls):
        contender.call()
    contender.seconds.append((time.perf_counter() - started) / calls)


def _row(
    contender: _Contender, ours: _Contender, reference: Sequence[Array] | None, outputs: Sequence[Array]
) -> Row:
    speedup = None if contender is ours else paired_ratio(contender.seconds, ours.seconds)
    errors = None
    if reference is not None:
        from tilewright.reference.oracle import relative_error

        errors = tuple(relative_error(y, y64) for y, y64 in zip(outputs, reference, strict=True))
    median = float(np.median(contender.seconds))
    return Row(contender.name, contender.kernels, median, speedup, errors, contender.detail)


def count_dispatches(stream: str) -> int:
    """Counts the kernels that a call launches, as `dispatched_kernels` lists them."""
    return len(dispatched_kernels(stream))


def dispatched_kernels(stream: str) -> list[str]:
    """Lists the kernels that a call launches, in order, from generic text of IREE's stream phase.

    A kernel in a loop counts once, and kernels of initializers, which run once at load, do not count. For a kernel with
    variants, the first variant is listed.
    """
    kernels = []
    in_function = False
    for line in stream.splitlines():
        top_level = re.match(r'^  "([\w.]+)"', line)
        if top_level:
            in_function = top_level[1] == "util.func"
        if in_function and re.match(r'^\s+(%\S+ = )?"stream\.cmd\.dispatch"', line):
            entry = re.search(r"entry_points = \[(?:@[\w$.]+::)*@([\w$.]+)", line)
            kernels.append(entry[1] if entry else "")
    return kernels
