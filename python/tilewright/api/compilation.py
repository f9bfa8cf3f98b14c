"""From a model to a program: IREE's front, our stage, IREE's back."""

from __future__ import annotations

import functools
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.api.stitch import Stitched, UnreadableError, kernel_files, run_passes, stitch
from tilewright.errors import CompileError, IreeError, OutputError, temporary_files
from tilewright.frontends import ImportedModel, Model, import_model
from tilewright.frontends.triangles import mark_triangles
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING, widen_convolutions, widening_note, without_data_tiling
from tilewright.iree.flags import iree_flags
from tilewright.iree.recursion import check_calls
from tilewright.iree.versions import check_iree
from tilewright.records.options import CompileOptions, NumericsMode
from tilewright.records.plan import Plan
from tilewright.records.report import Report
from tilewright.records.targets import Target, TargetChoice, resolve_targets
from tilewright.records.threads import Threads, checked_threads, choose_threads, thread_choices
from tilewright.runtime.program import Metadata, Program
from tilewright.runtime.session import missing_features, read_interface
from tilewright.runtime.state import check_in_place, check_state
from tilewright.runtime.stored import StoredWeights
from tilewright.system.cores import available_cores
from tilewright.system.deadline import Deadline
from tilewright.system.ptxas import KernelResources, assemble, find_ptxas, needed_capability
from tilewright.system.tuning_path import default_path
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import Worker, lend_worker

Progress = Callable[[str], None]


def compile(
    model: Model,
    target: TargetChoice = "cpu",
    *,
    threads: Threads | None = None,
    iree_flags: Sequence[str] = (),
    dump_dir: str | os.PathLike[str] | None = None,
    plan: Plan | str | os.PathLike[str] | None = None,
    strict: bool = False,
    numerics: NumericsMode = "default",
    grid_sync: bool = True,
    tuning: str | os.PathLike[str] | bool = True,
    entry: str | None = None,
    parameters: Mapping[str, str | os.PathLike[str]] | None = None,
    state: Mapping[str, str] | None = None,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Program:
    """Compiles a model to a program.

    Arguments:
        model: Path of an ONNX or MLIR file, an `onnx.ModelProto`, or MLIR text or bytecode.
        target: A name that `known_targets()` lists, "cpu" for this machine, a JSON file, or a `Target`. Several
            processors, as a sequence or with commas, give every kernel a variant for each, among which the processor
            chooses when the program runs. A GPU ("cuda:h200") need not be here.
        threads: Threads that the program may use, by default one per core that this process may use. It is compiled
            for so many, or for one where that is predicted faster. A sequence names the numbers to choose from, and
            `[2]` is two.
        iree_flags: More flags for IREE's compiler, as `iree-compile` takes them; they win over the defaults.
        dump_dir: Folder for every intermediate form.
        plan: A plan to carry out instead of making one: a `Plan`, or a JSON file.
        strict: Fail where ops would otherwise be left unfused or to IREE, because a pass of ours fails on them, or
            kernels left out, because IREE fails with them.
        numerics: What kernels may do to numbers: "default" leaves out roundings to bf16 and f16, accumulates them in
            f32 and divides by reciprocals; "strict" rounds, accumulates and divides as the model says.
        grid_sync: Whether kernels for GPUs may have barriers of the grid in place of launches. They need the device
            for themselves while they run; see docs/cuda.md.
        tuning: The database of measured plans to take decisions from: True for the user's own, which `tilewright.tune`
            fills, False for none.
        entry: Which function is the program, for MLIR with several.
        parameters: Parameter archives (.irpa) that MLIR refers to, by scope.
        state: Outputs that continue inputs, by name (`{"present": "past"}`): they are updated in place, and stay on the
            device between the calls of `Program.steps`. A model that would copy them is refused.
        timeout: Seconds after which the compilation is ended with a `CompileTimeoutError`, which names the step and
            the pass, or the phase of IREE's compiler, that it was in. By default there is no limit.
        progress: Called with the name of every step.
    """
    options = CompileOptions(
        threads=None if threads is None else checked_threads(threads),
        iree_flags=tuple(iree_flags),
        dump_dir=Path(dump_dir) if dump_dir is not None else None,
        plan=Path(plan) if isinstance(plan, str | os.PathLike) else plan,
        strict=strict,
        numerics=numerics,
        grid_sync=grid_sync,
        tuning=(default_path() if tuning else None) if isinstance(tuning, bool) else Path(tuning),
        entry=entry,
        parameters={scope: Path(path) for scope, path in (parameters or {}).items()},
        state=_checked_state(state),
        timeout=timeout,
    )
    return compile_with(options, model, target, progress=progress)


def _checked_state(state: Mapping[str, str] | None) -> dict[str, str]:
    if state is not None and not isinstance(state, Mapping):
        raise CompileError("state is no mapping", hint="name pairs: state={output: input}")
    return dict(state or {})


def compile_with(
    options: CompileOptions,
    model: Model,
    target: TargetChoice = "cpu",
    *,
    progress: Progress | None = None,
) -> Program:
    """`compile` with its options as one object."""
    check_iree()
    choices = thread_choices(options.threads or available_cores())
    targets = resolve_targets(target, threads=choices[-1])
    if options.numerics == "tf32" and targets[0].backend == "cpu":
        raise CompileError(
            f"numerics='tf32' is for GPUs; target {targets[0].name} multiplies f32 as it is",
            hint="choose 'default' or 'strict'",
        )
    deadline = Deadline(options.timeout)

    def report_step(step: str) -> None:
        deadline.check(step)
        if progress is not None:
            progress(step)

    with temporary_files():
        directory = WorkFolder("compile")
        try:
            return _compile_in(directory, model, target, targets, choices, options, report_step, deadline)
        except BaseException:
            directory.cleanup()
            raise


def _compile_in(
    directory: WorkFolder,
    model: Model,
    choice: TargetChoice,
    targets: Sequence[Target],
    choices: Sequence[int],
    options: CompileOptions,
    progress: Progress,
    deadline: Deadline,
) -> Program:
    folder = directory.path
    dump = _Dump(options.dump_dir)
    seconds: dict[str, float] = {}
    notes: list[str] = []
    on_gpu = targets[0].backend == "cuda"
    narrowest = targets[0] if on_gpu else targets[-1]
    # IREE's own kernels have no variants: they are for the target that every processor of interest has.
    flags = iree_flags(narrowest, host=choice == "cpu", extra=options.iree_flags)

    with lend_worker(folder, deadline=deadline) as worker:
        iree = IreeCompiler(worker)
        progress("importing the model")
        with _timed(seconds, "import"):
            imported = import_model(model, compiler=iree, directory=folder)
        if imported.signature is not None:
            check_state(options.state, imported.signature)
        dump.write("1-input.mlir", (imported.listing or "").encode() or imported.source)

        progress("IREE: to the preprocessing phase")
        with _timed(seconds, "iree_front"):
            front = iree.compile_to(imported.source, "preprocessing", flags=flags, name=imported.name)
        check_calls(front)
        parameters = {**imported.parameters, **options.parameters}
        front = mark_triangles(front, parameters)
        dump.write("2-preprocessing.mlir", front.encode())

        progress("fusing and generating kernels")
        scopes = tuple(parameters)
        with _timed(seconds, "tilewright"):
            stitched = _stitch(front, worker, targets, scopes, folder, options, notes)
            threads = 1 if on_gpu else choose_threads(stitched.report, targets[0], choices)
            if not on_gpu and threads < choices[-1]:
                targets = resolve_targets(choice, threads=threads)
                narrowest = targets[-1]
                notes.clear()  # they were about the plan for more threads
                stitched = _stitch(front, worker, targets, scopes, folder, options, notes)

        def for_iree(text: str) -> str:
            """What IREE's back end computes rightly, of a module that would go to it."""
            if not on_gpu:
                return text
            run = functools.partial(run_passes, worker)
            widened, count = widen_convolutions(text, run, folder)
            if count and (note := widening_note(count)) not in notes:
                notes.append(note)
            return widened

        stitched = replace(stitched, text=for_iree(stitched.text))
        dump.write("3-stitched.mlir", stitched.text.encode())
        kernels = kernel_files(targets)
        for name in ("plan.json", "report.json", "recipes.json", "target.json", *kernels):
            dump.copy(folder / name)
        how = {"numerics": options.numerics, "grid_sync": options.grid_sync}
        dump.write("options.json", json.dumps(how).encode())
        capability = (needed_capability(folder / "kernels.ptx") or narrowest.cpu) if on_gpu else ""
        resources: Mapping[str, KernelResources] = {}
        if on_gpu and stitched.report.kernels:
            progress("ptxas")
            with _timed(seconds, "ptxas"):
                files = {folder / name: target for name, target in kernels.items()}
                resources = _assemble(files, notes, deadline)

        progress("IREE: to the module")
        with _timed(seconds, "iree_back"):
            module, stitched, used_flags = _finish(
                iree, imported, front, stitched, flags, options, notes, for_iree=for_iree
            )

        path = folder / "model.vmfb"
        path.write_bytes(module)
        progress("storing weights as kernels read them")
        with _timed(seconds, "weights"):
            parameters = _store_weights(stitched, parameters, folder)
        interface = read_interface(path, entry=options.entry or imported.entry)
        signature = (
            imported.signature or interface.signature or iree.signature(imported.source, interface.entry)
        )
        if signature is not None:
            signature.check_sizes()
        check_state(options.state, signature)
        if options.state and signature is not None:
            with _timed(seconds, "state"):
                stream = _to_stream(iree, imported, front, stitched, used_flags)
                check_in_place(stream, interface.entry, options.state, signature)
    metadata = Metadata(
        target=narrowest.name if on_gpu else ",".join(target.name for target in targets),
        threads=threads,
        entry=interface.entry,
        device="cuda" if on_gpu else "local",
        resources=resources,
        capability=capability,
        **_residency(stitched.report, targets),
        features=narrowest.features,
        variants={
            target.name: target.cpu if on_gpu else target.features
            for target in targets
            if target is not narrowest
        },
        signature=signature,
        state=options.state,
        report=stitched.report,
        plan=stitched.plan.to_json() if stitched.plan else None,
        iree_flags=tuple(used_flags),
        notes=tuple(notes),
        seconds=seconds,
    )
    program = Program(
        module=path,
        parameters=parameters,
        metadata=metadata,
        keep_alive=directory,
        sources=options.parameters.values(),
    )
    if not on_gpu and not missing_features(narrowest.features):
        program.load()  # what is wrong with it should show now
    return program


def _stitch(
    front: str,
    worker: Worker,
    targets: Sequence[Target],
    scopes: Sequence[str],
    folder: Path,
    options: CompileOptions,
    notes: list[str],
) -> Stitched:
    """Our stage; what it cannot even read goes to IREE as it is, unless strict."""
    try:
        stitched = stitch(
            front,
            worker=worker,
            targets=targets,
            directory=folder,
            plan=options.plan,
            numerics=options.numerics,
            grid_sync=options.grid_sync,
            scopes=scopes,
            tuning=options.tuning,
            dump_dir=options.dump_dir,
            strict=options.strict,
        )
    except UnreadableError as error:
        if options.strict or options.plan is not None:
            raise
        notes.append(f"all of the model is left to IREE, because our stage cannot read it ({error.message})")
        return Stitched(text=front, report=Report(), plan=None, seconds=0.0)
    notes += [note for note in stitched.notes if note not in notes]
    return stitched


def _residency(report: Report, targets: Sequence[Target]) -> dict[str, int]:
    """What kernels whose workgroups wait for each other count on, for all of them to be resident."""
    workgroups = [kernel.workgroups for kernel in report.kernels if kernel.meets]
    if not workgroups:
        return {}
    return {
        "multiprocessors": min(max(workgroups), *(target.gpu.guaranteed_sms for target in targets)),
        "multiprocessor_threads": min(target.gpu.threads_per_sm for target in targets),
        "multiprocessor_shared_bytes": min(target.gpu.shared_bytes_per_sm for target in targets),
    }


def _assemble(
    kernels: Mapping[Path, Target], notes: list[str], deadline: Deadline
) -> Mapping[str, KernelResources]:
    """What the assembler says of our kernels, if there is one, of the first file's; what spills is noted.

    Launch bounds keep kernels to the registers of a real GPU; a target of one's own may say fewer.
    """
    ptxas = find_ptxas()
    if ptxas is None:
        notes.append(
            "ptxas is not here, so the kernels' registers are not known; pip install 'tilewright[cuda]'"
        )
        return {}
    found = [
        assemble(ptx, capability=needed_capability(ptx) or target.cpu, ptxas=ptxas, deadline=deadline)
        for ptx, target in kernels.items()
    ]
    for resources, target in zip(found, kernels.values(), strict=True):
        for name, kernel in resources.items():
            most = target.gpu.registers_per_thread
            if kernel.registers > most:
                raise CompileError(
                    f"kernel {name} takes {kernel.registers} registers a thread; target {target.name} has {most}",
                    hint="a larger gpu.registersPerThread in the target's file",
                )
            if kernel.spill_bytes:
                on = f" on {target.cpu}" if len(found) > 1 else ""
                notes.append(f"kernel {name} spills {kernel.spill_bytes} bytes{on}")
    return found[0]


def _store_weights(stitched: Stitched, parameters: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """The program's parameter files; those of the import that they replace are gone."""
    written = stitched.stored.write(parameters, folder)
    for scope, path in parameters.items():
        if written[scope] != path and path.parent == folder:
            path.unlink()
    return written


def _finish(
    iree: IreeCompiler,
    imported: ImportedModel,
    front: str,
    stitched: Stitched,
    flags: Sequence[str],
    options: CompileOptions,
    notes: list[str],
    *,
    for_iree: Callable[[str], str],
) -> tuple[bytes, Stitched, Sequence[str]]:
    """IREE's back end, with less where it fails with more: data tiling first, then our kernels.

    Data tiling is off from the start where IREE computes the module wrongly with it, unless the user asks for it.
    `for_iree` makes a module without our kernels one that IREE computes rightly.
    """
    is_asked_for = any(flag.partition("=")[0] == DATA_TILING for flag in options.iree_flags)
    reason = without_data_tiling(stitched.text)
    if reason is not None and DATA_TILING in flags and not is_asked_for:
        flags = [flag for flag in flags if flag != DATA_TILING]
        notes.append(f"data tiling is off, because {reason}")

    def attempt(text: str, with_flags: Sequence[str]) -> bytes:
        if text == front:
            # Nothing of ours is in it, and not all of IREE's text survives even its own parser.
            return iree.compile(imported.source, flags=with_flags, name=imported.name)
        return iree.resume(text.encode(), "preprocessing", flags=with_flags, name=imported.name)

    try:
        return attempt(stitched.text, flags), stitched, flags
    except IreeError as error:
        first = error
    untiled = [flag for flag in flags if flag != DATA_TILING]
    if len(untiled) < len(flags):
        try:
            module = attempt(stitched.text, untiled)
        except IreeError:
            module = None
        if module is not None:
            notes.append(f"data tiling is off, because IREE fails with it ({first.message})")
            return module, stitched, untiled
    if options.strict or not stitched.report.kernels:
        raise first
    alone = for_iree(front)
    for fewer in (flags, untiled):
        try:
            module = attempt(alone, fewer)
        except IreeError:
            continue
        notes.append(f"none of our kernels is in the program, because IREE fails with them ({first.message})")
        report = replace(stitched.report, kernels=(), raw={})
        empty = replace(stitched, text=alone, report=report, plan=None, stored=StoredWeights())
        return module, empty, fewer
    raise first


def _to_stream(
    iree: IreeCompiler, imported: ImportedModel, front: str, stitched: Stitched, flags: Sequence[str]
) -> str:
    """What `_finish` compiled, at the phase that has buffers in place of tensors."""
    if stitched.text == front:
        return iree.compile_to(imported.source, "stream", flags=flags, name=imported.name)
    source = stitched.text.encode()
    return iree.resume(source, "preprocessing", stop="stream", flags=flags, name=imported.name).decode()


class _timed:
    """Adds the wall time of a block to a table."""

    def __init__(self, table: dict[str, float], name: str) -> None:
        self._table, self._name = table, name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._table[self._name] = round(time.perf_counter() - self._started, 4)


class _Dump:
    """The folder for intermediate forms, if the user wants them."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"cannot be made ({error.strerror})", where=str(folder)) from None

    def write(self, name: str, data: bytes) -> None:
        if self._folder is not None:
            (self._folder / name).write_bytes(data)

    def copy(self, source: Path) -> None:
        if self._folder is not None and source.exists():
            shutil.copyfile(source, self._folder / source.name)
