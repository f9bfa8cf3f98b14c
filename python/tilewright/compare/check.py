"""Checks a program of an ONNX model against float64, and finds the op and the kernel at fault where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from onnx import ModelProto

from tilewright.api.compilation import compile_with
from tilewright.api.progress import Progress
from tilewright.compare.bisection import Found, find_first
from tilewright.compare.windows import Windows, values_of
from tilewright.errors import ModelError, TilewrightError, VerificationError
from tilewright.frontends import Model, import_model
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.flags import iree_flags
from tilewright.records.options import CompileOptions
from tilewright.records.targets import TargetChoice, resolve_targets
from tilewright.reference.judging import Difference, Judge, onnx_model, refuse_random
from tilewright.reference.oracle import Array
from tilewright.runtime.inputs import random_inputs
from tilewright.runtime.program import Program
from tilewright.runtime.session import Session
from tilewright.simulator.programs import simulate_program, simulated_target
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import keep_compilers, lend_worker


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """The op at fault, and what else computes it right or wrong."""

    found: Found
    kernel: str
    """The kernel of ours that computes the op in the window; "" if IREE does."""
    is_wrong_unfused: bool
    """True if the window is wrong with a kernel for each op, too."""
    is_wrong_in_iree: bool | None
    """True if IREE alone computes the window wrongly, too; None if it does not compile it, or was not asked because
    the kernels ran on a simulated device."""

    def __str__(self) -> str:
        found = self.found
        by = f"kernel {self.kernel}" if self.kernel else "IREE's own code"
        alone = {True: "wrong", False: "right", None: "not tried"}[self.is_wrong_in_iree]
        unfused = "wrong" if self.is_wrong_unfused else "right"
        ops = ", ".join(found.ops[:4]) + (", ..." if len(found.ops) > 4 else "")
        return (
            f"the first wrong op is {found.op} '{found.node}', computed by {by}; ops that show it: {ops} "
            f"({len(found.ops)}); unfused it is {unfused}, in IREE alone {alone}"
        )


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The result of a check."""

    runs: int
    """Sets of inputs that the program ran on."""
    outputs: int
    kernels: int
    differences: tuple[Difference, ...] = ()
    seed: int | None = None
    """The seed of the inputs that show a difference; None for given ones."""
    culprit: Culprit | None = None
    """None if nothing is wrong, or if no part of the model is wrong on its own."""
    program: Program = field(repr=False)

    @property
    def is_right(self) -> bool:
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        culprit = self.culprit
        return {
            "right": self.is_right,
            "runs": self.runs,
            "outputs": self.outputs,
            "kernels": self.kernels,
            "seed": self.seed,
            "differences": [vars(each) for each in self.differences],
            "culprit": culprit
            and {
                "op": culprit.found.op,
                "node": culprit.found.node,
                "kernel": culprit.kernel,
                "ops": list(culprit.found.ops),
                "wrong unfused": culprit.is_wrong_unfused,
                "wrong in IREE alone": culprit.is_wrong_in_iree,
            },
        }


def check(
    model: Model,
    target: TargetChoice = "cpu",
    *,
    options: CompileOptions | None = None,
    inputs: Sequence[Array] | None = None,
    runs: int = 3,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Checked:
    """Compiles an ONNX model, runs it and compares its results with float64; finds the first wrong op if they differ.

    Without `inputs`, it runs on `runs` sets of random ones, from `seed` on, with `dims` for named dims. With a `device`
    of the form "sim:h200", kernels are those of that GPU, whatever the target, and run on the simulated device, whose
    detectors watch. Raises `VerificationError` if there is no reference, or the simulated device gives no results;
    `SimulationError` if a detector finds a fault; and the errors of compilation and calls.
    """
    say = progress or (lambda step: None)
    options = replace(options or CompileOptions(), verify=False)
    if device is not None:
        target = simulated_target(device)
        if options.passes:
            raise VerificationError("passes of yours do not run on the simulated device")
    proto = onnx_model(model)
    if proto is None:
        raise ModelError(
            "only ONNX models have a reference to be checked against",
            where=str(model)[:200],
            hint="compare the outputs with those of the framework that the model is from",
        )
    if reason := refuse_random(proto):
        raise VerificationError(f"its results cannot be compared: {reason}")
    how = _Way(options, target, is_simulated=device is not None)
    with keep_compilers(), how.compiled(model, progress=say) as (program, call):
        signature = program.signature
        assert signature is not None  # ONNX declares it
        seeds = [None] if inputs is not None else range(seed, seed + runs)
        result = Checked(
            runs=len(seeds), outputs=len(signature.outputs), kernels=len(program.kernels), program=program
        )
        for each in seeds:
            arrays = list(inputs or ()) if each is None else random_inputs(signature, seed=each, dims=dims)
            say("comparing with float64")
            differences = _judged(Judge(proto, arrays), call(arrays))
            if differences:
                named = dict(zip([spec.name for spec in signature.inputs], arrays, strict=False))
                culprit = _culprit(proto, named, how, differences[0].output, progress=say)
                return replace(result, differences=tuple(differences), seed=each, culprit=culprit)
    return result


@dataclass(frozen=True)
class _Way:
    """How models are compiled and run."""

    options: CompileOptions
    target: TargetChoice
    is_simulated: bool

    @contextmanager
    def compiled(
        self, model: Model, *, progress: Progress | None = None
    ) -> Iterator[tuple[Program, Callable[[Sequence[Array]], Sequence[Array]]]]:
        """Gives a program and a function that runs it."""
        if not self.is_simulated:
            program = compile_with(self.options, model, self.target, progress=progress)
            yield program, lambda arrays: program(*arrays)
            return
        with WorkFolder("check") as folder:
            dump = self.options.dump_dir or folder
            program = compile_with(
                replace(self.options, dump_dir=dump), model, self.target, progress=progress
            )
            yield program, partial(_simulate, program, dump)

    def differences(self, model: ModelProto, inputs: Sequence[Array]) -> list[Difference]:
        """Returns what is wrong in a model's results; nothing if it does not compile or run, or has no reference."""
        try:
            with self.compiled(model) as (_, call):
                return _judged(Judge(model, inputs), call(inputs))
        except TilewrightError:
            return []


def _simulate(program: Program, dump: Path, arrays: Sequence[Array]) -> Sequence[Array]:
    simulated = simulate_program(program, dump, arrays)
    if simulated.outputs is None:
        left = ", ".join(map(str, simulated.invented))
        raise VerificationError(
            "the simulated device gives no results: "
            + (f"random numbers replace {left}" if left else "no kernel is ours")
        )
    return simulated.outputs


def _judged(judge: Judge, outputs: Sequence[Array]) -> list[Difference]:
    try:
        return judge.differences(outputs)
    except Exception as error:  # of many kinds, from two evaluators
        reason = " ".join(str(error).split())[:200]
        raise VerificationError(f"no evaluator computes the model in float64: {reason}") from error


def _culprit(
    model: ModelProto, inputs: Mapping[str, Array], how: _Way, output: str, *, progress: Progress
) -> Culprit | None:
    # Windows have other ops than the plan is about, and no state.
    way = replace(how, options=replace(how.options, plan=None, state={}, dump_dir=None, cache=None))
    try:
        windows = Windows(model, values_of(model, inputs), list(inputs))
    except Exception:  # of many kinds, from two evaluators
        return None
    found = find_first(windows, output, way.differences, progress=progress)
    if found is None:
        return None
    progress("looking at other ways to compute the op")
    unfused = replace(way, options=replace(way.options, policy="unfused"))
    return Culprit(
        found=found,
        kernel=_kernel(compile_with(way.options, found.window, way.target), found.node),
        is_wrong_unfused=bool(unfused.differences(found.window, found.inputs)),
        is_wrong_in_iree=None if way.is_simulated else _is_wrong_in_iree(found, way.target),
    )


def _kernel(program: Program, node: str) -> str:
    """Returns the kernel that computes a node; "" if none of ours does."""
    for kernel in program.kernels:
        if any(node in op.location for op in kernel.ops):
            return kernel.name
    return ""


def _is_wrong_in_iree(found: Found, target: TargetChoice) -> bool | None:
    with WorkFolder("check") as folder, lend_worker(folder) as worker:
        iree = IreeCompiler(worker)
        try:
            imported = import_model(found.window, compiler=iree, directory=folder)
            flags = iree_flags(resolve_targets(target, threads=1)[-1], host=target == "cpu")
            module = folder / "iree.vmfb"
            module.write_bytes(iree.compile(imported.source, flags=flags, name=imported.name))
            session = Session(module, imported.parameters, entry=imported.entry, threads=1)
            assert imported.signature is not None
            arrays = imported.signature.check_inputs(found.inputs)
            return bool(_judged(Judge(found.window, found.inputs), session(arrays, imported.signature)))
        except TilewrightError:
            return None
