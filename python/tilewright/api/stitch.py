"""The stitching stage: takes a module at IREE's preprocessing phase and returns it with our kernels spliced in.

It runs in the worker process, like IREE, so that an abort deep inside LLVM's code generation becomes an error instead
of ending the user's process. To run passes in this process, use `tilewright.ir.module`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.fallback import Restrictions, next_attempt, planned_parts
from tilewright.api.user_passes import answer_calls, describe_passes, register_stages, stage_options
from tilewright.errors import CompileError, ModelError, PassError, PlanError
from tilewright.ir.module import Module, write_reproducer
from tilewright.iree.text import from_iree, to_iree
from tilewright.pipelines import pass_text, pipeline
from tilewright.records.options import NumericsMode, Policy, Stage, UserPass
from tilewright.records.plan import Plan
from tilewright.records.report import Report
from tilewright.records.targets import Target
from tilewright.runtime.stored import StoredWeights
from tilewright.worker.doing import note_passes
from tilewright.worker.process import Worker, WorkerDied, WorkerTooSlow

if TYPE_CHECKING:
    from tilewright.tuning.lookup import TunedPlan


class UnreadableError(CompileError):
    """MLIR 22 cannot read the output of IREE's newer MLIR, because a type or attribute is spelled differently."""


LAUNCHES = "launches.json"
"""Name of the file that says which kernels of a CPU run on which tensors."""

_LEAST_STEP = 2048  # bytes by which the limit is lowered at least, because each new plan takes seconds

_EMPTY_TENSOR = re.compile(r"tensor<(?:[\d?]+x)*0x")


@dataclass(frozen=True)
class Stitched:
    """Result of the stitching stage."""

    text: str
    report: Report
    plan: dict[str, Any] | None
    """The plan's JSON data; None if no plan was made because there was nothing to fuse."""
    seconds: float
    stored: StoredWeights = field(default_factory=StoredWeights)
    """Weights that the text reads from the parameter files in a layout that the model's own files do not have."""
    notes: tuple[str, ...] = ()


def stitch(
    text: str,
    *,
    worker: Worker,
    targets: Sequence[Target],
    directory: Path,
    plan: Plan | Path | None = None,
    numerics: NumericsMode = "default",
    policy: Policy = "greedy",
    plan_seconds: float = 2.0,
    grid_sync: bool = True,
    scopes: Sequence[str] = (),
    tuning: Path | None = None,
    dump_dir: Path | None = None,
    strict: bool = False,
    passes: Mapping[Stage, Sequence[UserPass]] | None = None,
) -> Stitched:
    """Plans kernels, compiles them to files in `directory` and splices their launches into the module.

    If a pass fails on a kernel, its ops are compiled unfused, or by IREE, and a note says so. With `strict`, or for a
    given plan, the failure raises `PassError` instead (`PlanError` for an illegal plan).

    The plan is made for the first target; with several, every kernel has a variant for each (see `resolve_targets`).
    Weights in parameter files of `scopes` are to be stored in the layout that kernels read. `tuning` is the database
    whose decisions the plan uses where there are any. `passes` of the user run at their stages, in this process; with
    them, the database is not used and failures raise, because both are about the graph without them.
    """
    started = time.perf_counter()
    passes = passes or {}
    kind = targets[0].kind
    # The database's plans are those of the default policy, and those for GPUs were measured with grid barriers.
    measured = policy == "greedy" and (grid_sync or not kind.has_grid_barriers)
    if plan is None and not passes and tuning is not None and measured:
        from tilewright.tuning.lookup import tuned_plan
        from tilewright.tuning.subprograms import Setting

        again = partial(
            stitch,
            text,
            worker=worker,
            targets=targets,
            directory=directory,
            numerics=numerics,
            scopes=scopes,
            dump_dir=dump_dir,
            strict=strict,
        )
        setting = Setting(target=targets[0], numerics=numerics)
        tuned, note = tuned_plan(text, setting, database=tuning, worker=worker, folder=directory)
        return _stitch_tuned(again, tuned, note, database=tuning, started=started)
    files = _write_targets(targets, directory)
    inputs = {"target": files[0]}
    if plan is not None:
        inputs["plan-in"] = _as_file(plan, directory)
    outputs = {
        "object-path": directory / next(iter(kernel_files(targets))),
        "plan-out": directory / "plan.json",
        "report": directory / "report.json",
        "recipes": directory / "recipes.json",
        "launches": directory / LAUNCHES,
    }
    options: dict[str, str | list[str]] = {name: str(path) for name, path in {**inputs, **outputs}.items()}
    if kind.assembles:
        options["image-path"] = str(image_file(outputs["object-path"]))
    options["numerics"] = numerics
    options["policy"] = policy
    options["plan-seconds"] = repr(plan_seconds)
    options["scopes"] = list(scopes)
    options["variants"] = [str(file) for file in files[1:]]
    if not grid_sync:
        options["grid-sync"] = "false"
    if dump_dir is not None and not kind.assembles:
        options["dump-assembly"] = str(dump_dir / "kernels.s")
    options |= stage_options(list(passes))
    name = f"tilewright-{kind.backend}"
    notes: list[str] = list(describe_passes(passes))
    ask = partial(_run, worker, dump_dir=dump_dir, passes=passes)

    def attempt(restrictions: Restrictions) -> str:
        tried = {**options, **restrictions.options()}
        _remove(outputs)  # removes the files of an earlier attempt
        try:
            if plan is not None:
                return ask(text, pipeline(pass_text(name, tried)))
            return _run_planning(ask, text, name, tried, block_bytes=targets[0].block_bytes, notes=notes)
        except PassError as error:
            if plan is not None and error.message.startswith(("illegal plan", "plan '")):
                raise PlanError(error.message, where=error.location) from error
            if error.message.startswith("no plan by policy"):
                raise PlanError(
                    error.message, where=error.location, hint="the policy 'greedy' plans every model"
                ) from error
            # tilewright-opt has no passes of the user, so the command reproduces only failures without them.
            own = {
                option: value for option, value in tried.items() if option not in stage_options(list(passes))
            }
            failed = pipeline(pass_text(name, own))
            error.reproducer = write_reproducer(failed, from_iree(text), dump_dir, folder=directory)
            raise

    fallbacks: list[str] = []
    if plan is not None or strict or passes:
        stitched = attempt(Restrictions())
    else:
        stitched, fallbacks = _fall_back(attempt, outputs, notes)
    raw = _read_json(outputs["report"])
    report = Report.from_json({**raw, "fallbacks": fallbacks} if fallbacks else raw)
    return Stitched(
        # A module from which we take nothing stays unchanged, with one exception: IREE's compiler divides by extents of
        # zero, and `tile-normalize` removes the operations that have such extents.
        text=stitched if stitched and (report.kernels or passes or _EMPTY_TENSOR.search(text)) else text,
        report=report,
        plan=_read_json(outputs["plan-out"]) or None,
        seconds=time.perf_counter() - started,
        stored=StoredWeights.from_json(_read_json(outputs["recipes"]) if report.kernels else {}),
        notes=tuple(notes),
    )


def _fall_back(
    attempt: Callable[[Restrictions], str], outputs: Mapping[str, Path], notes: list[str]
) -> tuple[str, list[str]]:
    """Returns the first attempt that succeeds and notes what it left out; each attempt fuses less. "" if IREE compiles
    all."""
    fallbacks: list[str] = []
    restrictions: Restrictions | None = Restrictions()
    while restrictions is not None:
        try:
            return attempt(restrictions), fallbacks
        except PassError as error:
            parts = planned_parts(_read_json(outputs["plan-out"]), _read_json(outputs["report"]))
            fallback = next_attempt(error, parts, restrictions, failures=len(fallbacks) + 1)
            restrictions = fallback.restrictions
            fallbacks.append(fallback.note)
            notes += [fallback.note, _asking_to_report(error)]
    _remove(outputs)
    return "", fallbacks


def _remove(outputs: Mapping[str, Path]) -> None:
    for output in outputs.values():
        output.unlink(missing_ok=True)


def _asking_to_report(error: PassError) -> str:
    shown = f"please report it with this reproducer: {error.reproducer}" if error.reproducer else ""
    return f"that is a bug in Tilewright; {shown or 'please report it with the model'}"


def kernel_files(targets: Sequence[Target]) -> dict[str, Target]:
    """Returns the names of the kernel files: one object with all variants, or PTX for each target."""
    if not targets[0].kind.assembles:
        return {"kernels.o": targets[-1]}
    variants = {f"kernels.{number}.ptx": target for number, target in enumerate(targets[1:])}
    return {"kernels.ptx": targets[0], **variants}


def image_file(kernels: Path) -> Path:
    """Returns the path of the GPU code that the module embeds, which is made of a file of kernels."""
    return kernels.with_suffix(".fatbin")


def _stitch_tuned(
    stitch_with: Callable[..., Stitched],
    tuned: TunedPlan | None,
    note: str,
    *,
    database: Path,
    started: float,
) -> Stitched:
    """Stitches with a tuned plan; if that does not help, adds a note and plans without it.

    `stitch_with` is `stitch` with all arguments but the plan, and `started` the time at which the stage began.
    """
    notes = [note] if note else []
    if tuned is not None:
        try:
            stitched = stitch_with(plan=tuned.plan)
        except (PlanError, PassError) as error:
            notes.append(
                f"compiled without measurements: {database} has a plan that does not fit ({error.message})"
            )
        else:
            raw = dict(stitched.report.raw)
            tuned.note(raw)
            seconds = time.perf_counter() - started
            return replace(stitched, report=Report.from_json(raw), seconds=seconds, notes=tuple(notes))
    stitched = stitch_with()
    return replace(stitched, notes=(*notes, *stitched.notes))


def answer(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Handles one request in the worker: parses the text, runs the pipeline and prints the result."""
    note_passes()
    try:
        module = Module.parse(from_iree(blob.decode()), name="preprocessing.mlir")
    except ModelError as error:
        return {"ok": False, "unreadable": str(error)}, b""
    dump = Path(header["dump_dir"]) if header["dump_dir"] else None
    register_stages(header["stages"])
    # Passes of the user may leave invalid IR, and who looks at the IR after each pass wants to know which one did.
    module.run_unrecorded(
        header["pipeline"], dump_directory=dump, verify_each=dump is not None or bool(header["stages"])
    )
    return {"ok": True}, to_iree(module.to_text(generic=True, debug_info=True)).encode()


def _run_planning(
    ask: Callable[[str, str], str],
    text: str,
    name: str,
    options: dict[str, str | list[str]],
    *,
    block_bytes: int,
    notes: list[str],
) -> str:
    """Runs the planning pipeline; if code exceeds the block memory that its plan counted, replans with less.

    The new limit is lower by the excess.
    """
    while True:
        try:
            return ask(text, pipeline(pass_text(name, options)))
        except PassError as error:
            excess = error.numbers.get("excess_block_bytes")
            if excess is None:
                raise
            block_bytes -= max(excess, _LEAST_STEP)
            if block_bytes <= 0:
                raise
            options["block-bytes"] = str(block_bytes)
            notes.append(f"planned again with {block_bytes} bytes of shared memory a block: {error.message}")


def run_passes(worker: Worker, text: str, passes: str) -> str:
    """Runs a pipeline on IREE's generic text in the worker and returns such text."""
    return _run(worker, text, passes)


def _run(
    worker: Worker,
    text: str,
    pipeline: str,
    *,
    dump_dir: Path | None = None,
    passes: Mapping[Stage, Sequence[UserPass]] | None = None,
) -> str:
    dump = str(dump_dir / "passes") if dump_dir else None
    header = {
        "request": f"{__name__}:answer",
        "step": "the stage that fuses and generates kernels",
        "pipeline": pipeline,
        "dump_dir": dump,
        "stages": list(passes or {}),
    }
    try:
        reply, result, log = worker.ask(header, text.encode(), on_call=answer_calls(passes or {}))
    except WorkerTooSlow as death:
        raise CompileError(f"the compiler's process {death.how}", details=death.log) from None
    except WorkerDied as death:
        fatal = re.search(r"^LLVM ERROR: .*", death.log, re.MULTILINE)
        raise PassError(
            f"the compiler's process {death.how}" + (f": {fatal[0]}" if fatal else ""),
            hint="this is a bug in Tilewright; please report it with the command that reproduces it",
            details=death.log,
        ) from None
    if reply["ok"]:
        return result.decode()
    if "unreadable" in reply:
        raise UnreadableError(reply["unreadable"])
    if "pass_error" in reply:
        raise PassError(**reply["pass_error"])
    raise PassError(reply["error"], details=reply["trace"] + log)


def _write_targets(targets: Sequence[Target], directory: Path) -> list[Path]:
    files: list[Path] = []
    for target in targets:
        files.append(directory / f"target{len(files) or ''}.json")
        files[-1].write_text(json.dumps(target.to_json()))
    return files


def _as_file(plan: Plan | Path, directory: Path) -> Path:
    if isinstance(plan, Plan):
        path = directory / "plan-in.json"
        plan.save(path)
        return path
    if not plan.is_file():
        reason = "a folder, not a file" if plan.is_dir() else "no such file"
        raise PlanError(reason, where=str(plan), hint="`--plan-out` writes one")
    return plan.resolve()


def _read_json(path: Path) -> dict[str, Any]:
    """Reads a file of the compiler; {} if there is none."""
    import msgspec  # it takes a third of the time of `json`

    return msgspec.json.decode(path.read_bytes()) if path.exists() else {}
