"""Judge, which compiles models, runs them, and reports what is wrong with each.

Several models are compiled as one. If that fails as a whole, judging them one by one tells which model is at fault;
see `hunt`.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto
from tilewright.api.compilation import compile
from tilewright.errors import IreeError, ModelError, TilewrightError
from tilewright.records.report import Report
from tilewright.reference.judging import MORE_THAN_ROUNDING
from tilewright.reference.oracle import (
    float64_reference,
    model_tolerance,
    relative_error,
    run_double_onnx,
    tolerance,
    widen,
    widen_array,
)
from tilewright.reference.rounded import rounded_reference
from tilewright.simulator.programs import simulate_program, simulated_target
from tilewright.system.workfolder import WorkFolder

from fuzz.builder import ELEMENT_TYPES, Array
from fuzz.kinds import KINDS
from fuzz.merge import merge, part_of
from fuzz.symbols import with_known_sizes

# Plans depend on this number; it does not exceed the cores of the machines that run the tests.
THREADS = 2
LEAST_SHARE = 0.9
# Several graphs share the cost of compiling a module; with many more, quadratic parts of the compiler dominate.
GRAPHS_PER_MODULE = 16
# IREE's back end takes as long as all other steps, and a kernel is the same without it.
MODULES_PER_IREE = 8
VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on one model."""

    kind: str
    """"passed", "refused", "wrong numbers", "error", "crash", "hang", or "oracle" if the judge itself failed."""
    message: str = ""
    error: float = 0.0
    """The largest relative error of the outputs."""
    tolerance: float = 0.0
    taken: int = 0
    eligible: int = 0
    is_compared: bool = True
    """False if the simulated device did not compute all of the model."""

    @property
    def failed(self) -> bool:
        return self.kind not in ("passed", "refused")

    @property
    def has_share(self) -> bool:
        """True if enough of the model ran in our kernels to test them."""
        return self.eligible > 0 and self.taken >= LEAST_SHARE * self.eligible

    @property
    def counts(self) -> bool:
        """True if the model tests our kernels."""
        return self.is_compared and self.has_share

    def same_failure(self, other: Verdict) -> bool:
        """Returns True if both fail alike; numbers and names in a message, and the place where a hang was ended, may
        differ."""
        if self.kind != other.kind or self.kind == "hang":
            return self.kind == other.kind
        return skeleton(self.message) == skeleton(other.message)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def skeleton(message: str) -> str:
    """Returns a message without the parts that differ between models: positions, numbers, names and types."""
    message = re.sub(r"'[^']*'|\"[^\"]*\"|<[^>]*>|\([^)]*\)|%\w+", "_", message.split("; ")[0])
    return re.sub(r"\S*\d\S*", "_", message)


@dataclass(frozen=True)
class Expected:
    """Inputs of a model, and its outputs in float64."""

    model: ModelProto
    inputs: list[Array]
    outputs: list[Array]
    tolerance: float

    @staticmethod
    def of(model: ModelProto, seed: int, kind: str = "all") -> Expected:
        """Computes what a graph of a kind must return; open dims have the sizes that they are named after."""
        model = with_known_sizes(model)
        inputs = KINDS[kind].inputs(model, seed)
        if KINDS[kind].is_special:
            # ONNX Runtime loses NaN in some operators.
            outputs = run_double_onnx(widen(model), [widen_array(value) for value in inputs])
        else:
            outputs = float64_reference(model, inputs)
        if KINDS[kind].has_twins:
            _check_twins(outputs)
        return Expected(model, inputs, outputs, model_tolerance(model))

    def judged(self, outputs: Sequence[Array]) -> tuple[float, float]:
        """Returns the largest error of the outputs and the tolerance, which is higher for an ill-conditioned model."""
        worst = max(_errors(outputs, self.outputs))
        if worst <= self.tolerance:
            return worst, self.tolerance
        own = _errors(rounded_reference(self.model, self.inputs), self.outputs)
        return worst, max(self.tolerance, MORE_THAN_ROUNDING * max(own))


def _check_twins(outputs: Sequence[Array]) -> None:
    """Raises `ValueError` if outputs of the reference that must be equal are not; each pair is one behind the other."""
    for y, twin in zip(outputs[::2], outputs[1::2], strict=True):
        if not relative_error(y, twin) <= tolerance(np.float64):
            raise ValueError("the reference contradicts itself")


def _errors(outputs: Sequence[Array], expected: Sequence[Array]) -> list[float]:
    return [relative_error(y, y64) for y, y64 in zip(outputs, expected, strict=True)]


def judge(
    models: Mapping[str, ModelProto],
    seeds: Mapping[str, int],
    *,
    target: str,
    kind: str = "all",
    dump_dir: Path | None = None,
) -> dict[str, Verdict]:
    """Judges each model, of one of `kinds.KINDS`, with inputs from its seed.

    Errors that a compiler may raise become verdicts. The target may be a simulated device such as `sim:h200`; a bug
    that the device finds is an error, too.
    """
    verdicts: dict[str, Verdict] = {}
    expected: dict[str, Expected] = {}
    for name, model in models.items():
        try:
            expected[name] = Expected.of(model, seeds[name], kind)
        except Exception as error:
            verdicts[name] = Verdict(kind="oracle", message=_one_line(error))
    judged = {name: models[name] for name in expected}
    if not judged:
        return verdicts
    arrays = [array for part in expected.values() for array in part.inputs]
    try:
        if target.startswith("sim:"):
            ran = simulate(merge(judged), arrays, target=target, dump_dir=dump_dir)
        else:
            through_iree = goes_through_iree(seeds[next(iter(judged))])
            ran = run_here(merge(judged), arrays, target=target, dump_dir=dump_dir, through_iree=through_iree)
        return verdicts | compare(expected, ran.outputs, ran.report, incomplete=ran.incomplete)
    except (ModelError, IreeError) as error:
        return verdicts | dict.fromkeys(judged, Verdict(kind="refused", message=_one_line(error)))
    except Exception as error:
        return verdicts | dict.fromkeys(judged, Verdict(kind="error", message=_one_line(error)))


@dataclass(frozen=True)
class Ran:
    """Result of a merged model that was compiled and run."""

    outputs: Sequence[Array]
    report: Report
    incomplete: frozenset[str] = frozenset()
    """Parts that were not computed completely, so that their outputs mean nothing; "" stands for all parts."""


class DifferentBitsError(RuntimeError):
    """A program computes other bits without IREE than in it."""


def goes_through_iree(seed: int) -> bool:
    """Returns True for the modules that IREE's back end compiles and its runtime runs even if all kernels are ours."""
    return seed // GRAPHS_PER_MODULE % MODULES_PER_IREE == 0


def has_same_bits(results: Sequence[Array], others: Sequence[Array]) -> bool:
    """Returns True if two calls gave the same results, NaN included."""
    return all(ours.tobytes() == other.tobytes() for ours, other in zip(results, others, strict=True))


def run_here(
    model: ModelProto,
    arrays: Sequence[Array],
    *,
    target: str,
    dump_dir: Path | None,
    through_iree: bool,
) -> Ran:
    """Compiles and runs a model on this machine. Raises the errors of the compiler and the runtime.

    If all kernels are ours, they run without IREE, where `through_iree` is set in both ways.
    """
    program = compile(
        model, target, threads=[THREADS], strict=True, dump_dir=dump_dir, cache=False, deploy=through_iree
    )
    outputs = program(*arrays)
    if through_iree and program.runtime == "direct":
        call = program.session().bind(arrays, program.signature)
        call()
        if not has_same_bits(outputs, call.outputs()):
            raise DifferentBitsError("IREE's runtime gives other bits")
    return Ran(outputs, program.metadata.report)


def simulate(model: ModelProto, arrays: Sequence[Array], *, target: str, dump_dir: Path | None) -> Ran:
    """Compiles and runs a model on the simulated device `sim:GPU`. Raises the errors of the compiler and of the
    device's detectors."""
    with WorkFolder("fuzz") as folder:
        dump = dump_dir or folder
        program = compile(model, simulated_target(target), strict=True, dump_dir=dump)
        ran = simulate_program(program, dump, arrays)
    incomplete = {part_of(left.location) for left in ran.invented} if ran.kernels else {""}
    return Ran(ran.results, program.metadata.report, frozenset(incomplete))


def compare(
    expected: Mapping[str, Expected],
    outputs: Sequence[Array],
    report: Report,
    *,
    incomplete: frozenset[str] = frozenset(),
) -> dict[str, Verdict]:
    """Judges each part of a merged model by the outputs; parts in `incomplete` pass."""
    coverage = Coverage.of(report)
    rest = iter(outputs)
    verdicts = {}
    for name, part in expected.items():
        own = list(itertools.islice(rest, len(part.outputs)))
        is_known = not incomplete & {name, ""}
        verdict = _compared(part, own) if is_known else Verdict(kind="passed", is_compared=False)
        verdicts[name] = replace(verdict, taken=coverage.taken[name], eligible=coverage.eligible[name])
    return verdicts


def _compared(part: Expected, outputs: Sequence[Array]) -> Verdict:
    worst, limit = part.judged(outputs)
    if not worst <= limit:
        message = f"{worst:.1e} from float64, at most {limit:.1e}"
        return Verdict(kind="wrong numbers", message=message, error=worst, tolerance=limit)
    return Verdict(kind="passed", error=worst, tolerance=limit)


@dataclass(frozen=True)
class Coverage:
    """Number of ops that must run in some kernel, and of those that run in ours, for each part of a merged model."""

    taken: Counter[str] = field(default_factory=Counter)
    eligible: Counter[str] = field(default_factory=Counter)

    @staticmethod
    def of(report: Report) -> Coverage:
        coverage = Coverage()
        for op in (op for kernel in report.kernels for op in kernel.ops if op.op not in VIEWS):
            coverage.taken[part_of(op.location)] += 1
            coverage.eligible[part_of(op.location)] += 1
        for left in report.left_to_iree:
            coverage.eligible[part_of(left.location)] += left.is_dispatch
        return coverage


def operators(model: ModelProto) -> Counter[str]:
    """Counts each operator with each type, as "Op f32"."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    values = (*inferred.input, *inferred.value_info, *inferred.output)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    types |= {tensor.name: tensor.data_type for tensor in inferred.initializer}
    names = {element: name for name, element in ELEMENT_TYPES.items()}
    counts: Counter[str] = Counter()
    for node in inferred.node:
        element = types.get(_data(node)) or types.get(node.output[0], 0)
        counts[f"{node.op_type} {names.get(element) or TensorProto.DataType.Name(element).lower()}"] += 1
    return counts


def _data(node: onnx.NodeProto) -> str:
    """Returns the operand that gives a node its type; the result of an If does."""
    at = {"Where": 1, "Loop": 2, "If": len(node.input)}.get(node.op_type, 0)
    return str(node.input[at]) if at < len(node.input) else ""


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())[:400]
    return text if isinstance(error, TilewrightError) else f"{type(error).__name__}: {text}"
