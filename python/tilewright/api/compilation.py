"""`tilewright.compile`: checks the options, runs the stages and returns a program."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.progress import Progress
from tilewright.api.running import MakeShapes, Setting, run
from tilewright.cache.use import CacheUse
from tilewright.errors import CompileError, IreeError
from tilewright.frontends import ImportedModel, Model
from tilewright.iree.versions import check_iree
from tilewright.records.dims import DimChoice, read_dims
from tilewright.records.options import CompileOptions, NumericsMode, Policy, Stage, UserPass
from tilewright.records.plan import Plan
from tilewright.records.targets import TargetChoice, resolve_targets
from tilewright.records.threads import Threads, checked_threads, thread_choices
from tilewright.runtime.again import Again
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.processor import missing_features
from tilewright.runtime.program import Program
from tilewright.runtime.shapes import Shapes
from tilewright.system.cache_path import default_cache
from tilewright.system.cores import available_cores
from tilewright.system.deadline import Deadline
from tilewright.system.tuning_path import default_path
from tilewright.system.workfolder import WorkFolder

if TYPE_CHECKING:  # a program from the cache needs none of what compiles one
    from tilewright.api.describe import Compiled
    from tilewright.api.job import Job

_FIXED_MAY_DO = "IREE may take the model with sizes for all of its dims (dims=, --dims)"
_PYTORCH_MAY_DO = "torch.compile(module, backend='tilewright') leaves to PyTorch what IREE refuses"


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
    policy: Policy = "greedy",
    plan_seconds: float = 2.0,
    grid_sync: bool = True,
    tuning: str | os.PathLike[str] | bool = True,
    entry: str | None = None,
    parameters: Mapping[str, str | os.PathLike[str]] | None = None,
    state: Mapping[str, str] | None = None,
    dims: Mapping[str, DimChoice] | None = None,
    passes: Mapping[Stage, Sequence[UserPass]] | None = None,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | bool = True,
    timeout: float | None = None,
    deploy: bool = True,
    verify: bool = False,
    progress: Progress | None = None,
) -> Program:
    """Compiles a model to a program.

    Arguments:
        model: Path of an ONNX, MLIR or torch.export file (.pt2), an `onnx.ModelProto`, MLIR text or bytecode, a
            `torch.nn.Module` or a function of `jax.jit` with `example_inputs`, or what `torch.export.export` or
            `jax.export.export` returns. A .pt2 file with pickled objects is refused.
        target: Name that `known_targets()` lists, "cpu" for this machine, a JSON file, or a `Target`. Several
            processors, as a sequence or with commas, give every kernel a variant for each, and the runtime chooses one
            on the machine that it runs on. A GPU ("cuda:h200") need not be in this machine.
        threads: Number of threads that the program may use; by default one per core that this process may use. The
            program is compiled for that number, or for one thread if that is predicted to be faster. A sequence lists
            the numbers to choose from; `[2]` means exactly two.
        iree_flags: Additional flags for IREE's compiler, as `iree-compile` takes them; they override the defaults.
        dump_dir: Folder for every intermediate form.
        plan: Plan to use instead of making one: a `Plan`, or a JSON file.
        strict: True to raise an error where a compilation otherwise leaves ops unfused or to IREE, because one of our
            passes fails on them, or leaves out kernels, because IREE fails on them.
        numerics: "default" leaves out roundings to bf16 and f16, accumulates these types in f32 and divides by
            multiplying with reciprocals; "strict" rounds, accumulates and divides as the model says.
        policy: How the plan is made: "greedy" grows fusion groups as long as predictions improve, "unfused" gives every
            op a kernel of its own, and "exhaustive" tries every choice of forms and every partition of a model of at
            most ten ops. "xla",
            "fusionstitching", "welder", "powerfusion", "souffle" and "chimera" plan as these systems do, and "unified"
            improves the best of all their plans by a search; see docs/design/search.md.
        plan_seconds: Seconds that each search of the policy "unified" may take, about: that over forms and that over
            groups. They end after a number of trials and of groups, so plans do not depend on the clock. 0 takes the
            best plan of the other policies as it is.
        grid_sync: True if GPU kernels may have grid barriers instead of separate launches. Such kernels need the
            device for themselves while they run; see docs/guide/gpu.md.
        tuning: Database of measured plans whose decisions the plan uses. True is the user's own, which
            `tilewright.tune` fills; False is none.
        entry: Name of the function to compile, for MLIR with several functions.
        parameters: Parameter archives (.irpa) that MLIR refers to, by scope.
        state: Outputs that continue inputs, by name (`{"present": "past"}`). They are updated in place and stay on the
            device between the calls of `Program.steps`. A model that would copy them is refused.
        dims: Sizes of dims that the model leaves open, by name, or by input and axis ("x.0"). A number fixes a dim, a
            pair is the least and the greatest size that calls may have, and a list gives sizes to build ahead. A shape
            of other dims gets kernels when the program is first called with it; see docs/guide/shapes.md.
        passes: Passes of your own by stage: "normalized" (before planning), "planned" or "programs". Each is a function
            that is given the module as an `ir.OpView`, an `ir.Pass`, or a textual pipeline. They run in this process,
            possibly more than once per compilation. No database of plans is used then, and a failure of our passes is
            an error, as with `strict`.
        example_inputs: Inputs to export a `torch.nn.Module` or a function of JAX with: a tuple of positional
            arguments, or a dict of keyword arguments. The program takes tensors of these shapes and dtypes, nested in
            the same way.
        cache: Folder of the compilation cache, which makes the second compilation of the same model a load. True is
            the user's own, $TILEWRIGHT_CACHE (which may be "off"); False is none. See docs/guide/cache.md.
        timeout: Seconds after which the compilation ends with `CompileTimeoutError`, which names the step and the
            pass, or the phase of IREE's compiler, that was running. By default there is no limit.
        deploy: False to leave out the `.vmfb`, which takes IREE half of the time of a small model, if the program runs
            without IREE. It is compiled again, with the module, when it is saved or taken to IREE.
        verify: True to run the program once, on random inputs, and to raise `VerificationError` if its results differ
            from the model in float64 by more than rounding explains. For ONNX models, and targets that this machine
            runs; `tilewright check` also finds the op at fault.
        progress: Function that is called with the name of every step.
    """
    options = CompileOptions(
        threads=None if threads is None else checked_threads(threads),
        iree_flags=tuple(iree_flags),
        dump_dir=Path(dump_dir) if dump_dir is not None else None,
        plan=Path(plan) if isinstance(plan, str | os.PathLike) else plan,
        strict=strict,
        numerics=numerics,
        policy=policy,
        plan_seconds=plan_seconds,
        grid_sync=grid_sync,
        tuning=(default_path() if tuning else None) if isinstance(tuning, bool) else Path(tuning),
        entry=entry,
        parameters={scope: Path(path) for scope, path in (parameters or {}).items()},
        state=_checked_state(state),
        dims=read_dims(dims),
        passes={stage: tuple(each) for stage, each in (passes or {}).items()},
        example_inputs=example_inputs,
        cache=(default_cache() if cache else None) if isinstance(cache, bool) else Path(cache).absolute(),
        timeout=timeout,
        deploy=deploy,
        verify=verify,
    )
    return compile_with(options, model, target, progress=progress)


def _checked_state(state: Mapping[str, str] | None) -> dict[str, str]:
    if state is not None and not isinstance(state, Mapping):
        raise CompileError("state is not a mapping", hint="give pairs: state={output: input}")
    return dict(state or {})


def compile_with(
    options: CompileOptions,
    model: Model,
    target: TargetChoice = "cpu",
    *,
    progress: Progress | None = None,
) -> Program:
    """Compiles a model like `compile`, with the options as one object."""
    program = _compile(options, model, target, progress=progress)
    if options.verify:
        if progress is not None:
            progress("verifying the results")
        from tilewright.api.verification import verify

        verify(program, model)
    return program


def _compile(
    options: CompileOptions, model: Model, target: TargetChoice, *, progress: Progress | None
) -> Program:
    check_iree()
    choices = thread_choices(options.threads or available_cores())
    targets = resolve_targets(target, threads=choices[-1])
    if options.numerics == "tf32" and not targets[0].kind.rounds_to_tf32:
        raise CompileError(
            f"numerics='tf32' is only for GPUs; target {targets[0].name} multiplies f32 as it is",
            hint="choose 'default' or 'strict'",
        )
    setting = Setting(
        options=options, model=model, target=target, threads=tuple(choices), targets=tuple(targets)
    )
    kept: list[ImportedModel] = []

    def stages(job: Job) -> Compiled:
        from tilewright.api.front import import_user_model
        from tilewright.api.stages import run_stages
        from tilewright.frontends.pytorch import is_module

        kept.append(import_user_model(job, model))
        try:
            return run_stages(job, kept[0])
        except IreeError as error:
            if kept[0].is_dynamic:
                error.hint = f"{error.hint}; {_FIXED_MAY_DO}" if error.hint else _FIXED_MAY_DO
            elif is_module(model):
                error.hint = error.hint or _PYTORCH_MAY_DO
            raise

    def make_shapes(folder: WorkFolder | None) -> MakeShapes:
        if options.plan is not None or options.passes:
            return lambda _: None  # a plan is for one shape, and passes run in the caller's thread only
        imported = kept[0] if kept else None

        def shapes(metadata: Metadata) -> Shapes | None:
            if not metadata.dims:
                return None
            from tilewright.api.recompilation import Recompilation

            return Recompilation(setting, model_key=cache.model_key, imported=imported, folder=folder).shapes(
                metadata
            )

        return shapes

    def without_barriers() -> Program:
        return _compile(replace(options, grid_sync=False, dump_dir=None), model, target, progress=None)

    def deployed() -> Program:
        return _compile(replace(options, deploy=True, dump_dir=None), model, target, progress=None)

    cache = CacheUse(setting.request)
    may_change = targets[0].kind.has_grid_barriers and options.grid_sync and options.plan is None
    program = run(
        setting,
        stages,
        cache,
        deadline=Deadline(options.timeout),
        progress=progress,
        make_shapes=make_shapes,
        again=Again(
            without_barriers=without_barriers if may_change else None,
            deployed=None if options.deploy else deployed,
        ),
    )
    return _loaded(program)


def _loaded(program: Program) -> Program:
    """Loads a program if this machine can run it, so that any defect shows now rather than at the first call."""
    if program.metadata.kind.in_process and not missing_features(program.metadata.features):
        program.load()
    return program
