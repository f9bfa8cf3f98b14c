"""Tests that patterns around reductions become one kernel each, which moves little more than necessary.

The necessary bytes follow from the model: each input, output and weight once. The actual ones are counted by the
instrumented build of the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pytest
from compiled import Launches, ahead, compiled
from onnx import ModelProto
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.traffic import compulsory_bytes

from benchmarks.workloads import WORKLOADS, stitch

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=14)]

_MOST_TIMES_COMPULSORY = 1.05
# Every head reads the shared mask or tables, and rotary reads both halves of its input at an offset.
_READ_AGAIN = ("causal-softmax", "rotary")

# Cases with rows that a workgroup cannot keep in half of the level-2 cache of the oldest processors (256 KiB).
_TOO_LONG = {"x86-64-v2": frozenset({"softmax-1x50257", "log-softmax-1x50257", "random-stitch-19"})}

# The sizes are distinct and odd; rows are shorter and longer than a vector; there are single rows, columns and
# elements.
_SHAPES: tuple[tuple[int, ...], ...] = (
    *((7, 13), (3, 5, 17), (2, 3, 5, 7), (33, 65), (13, 1, 9)),
    *((1, 129), (129, 1), (1, 1), (5,)),
)
_PATTERNS: dict[str, Callable[[Sequence[int]], ModelProto]] = {
    "softmax": stitch.softmax,
    "masked-softmax": stitch.masked_softmax,
    "log-softmax": stitch.log_softmax,
    "layer-norm": stitch.layer_norm_op,
    "layer-norm-decomposed": stitch.layer_norm_chain,
    "rms-norm": stitch.rms_norm_chain,
    "bias-residual-layer-norm": stitch.bias_residual_layer_norm,
    "l2-normalise": stitch.l2_normalise,
    "gelu-erf": stitch.gelu_erf_chain,
    "gelu-tanh": stitch.gelu_tanh_chain,
    "silu-product": stitch.silu_product,
}
_OUTER_AXES = (((7, 13), 0), ((3, 5, 17), 1), ((3, 17, 33), 1), ((65, 33), 0), ((2, 3, 5, 7), 2))


def _cases() -> dict[str, Callable[[], ModelProto]]:
    cases: dict[str, Callable[[], ModelProto]] = {}
    for name, build in _PATTERNS.items():
        cases |= {f"{name}-{_by(shape)}": partial(build, shape) for shape in _SHAPES}
    for shape, axis in _OUTER_AXES:
        cases[f"softmax-axis{axis}-{_by(shape)}"] = partial(stitch.softmax, shape, axis=axis)
        cases[f"batch-statistics-{_by(shape)}"] = partial(stitch.batch_statistics, shape)
    suites = ("stitch", "random-stitch")
    return cases | {w.name: w.build for w in WORKLOADS.values() if w.suite in suites and not w.is_large}


def _by(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


_CASES = _cases()


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    errors: list[float]
    tolerance: float
    launches: Launches
    reasons: list[str]
    """Reasons why there are several kernels, if there are."""
    bytes_moved: int
    bytes_of_bindings: int
    bytes_compulsory: int
    bytes_shared: int
    """Bytes that each workgroup after the first reads again, of all inputs but the largest, because rows share
    them."""


def _run(name: str) -> _Outcome:
    model = _CASES[name]()
    inputs = random_inputs(model, 0)
    expected = float64_reference(model, inputs)
    with compiled(model) as result:
        outputs = result.program(*inputs)
        traffic = result.traffic()
        compulsory = compulsory_bytes(model, inputs, outputs)
        shared = compulsory - sum(array.nbytes for array in (max(inputs, key=lambda x: x.nbytes), *outputs))
        workgroups = sum(kernel.workgroups for kernel in result.program.metadata.report.kernels)
        return _Outcome(
            errors=[relative_error(y, y64) for y, y64 in zip(outputs, expected, strict=True)],
            tolerance=model_tolerance(model),
            launches=result.launches(),
            reasons=[edge.reason for edge in result.program.metadata.report.edges_at_launch],
            bytes_moved=sum(kernel.loaded + kernel.stored for kernel in traffic),
            bytes_of_bindings=sum(kernel.compulsory for kernel in traffic),
            bytes_compulsory=compulsory,
            bytes_shared=(workgroups - 1) * shared,
        )


@pytest.fixture(scope="module")
def outcome_of(request: pytest.FixtureRequest, cpu_target: str) -> Iterator[Callable[[str], _Outcome]]:
    yield from ahead(request, "case", _run)


@pytest.mark.parametrize("case", _CASES)
def test_pattern_is_one_kernel(case: str, outcome_of: Callable[[str], _Outcome], cpu_target: str) -> None:
    outcome = outcome_of(case)
    assert max(outcome.errors) <= outcome.tolerance
    if case in _TOO_LONG.get(cpu_target, ()):
        assert any("the target has 131072" in reason for reason in outcome.reasons)
        return
    assert outcome.launches == Launches(ours=1, others=0, copies=0, fills=0), outcome.reasons


@pytest.mark.parametrize("case", [case for case in _CASES if not case.startswith(_READ_AGAIN)])
def test_pattern_moves_little_more_than_it_must(
    case: str, outcome_of: Callable[[str], _Outcome], cpu_target: str
) -> None:
    """The bindings are those of the model, so nothing is passed twice; and no program can move less than that."""
    if case in _TOO_LONG.get(cpu_target, ()):
        pytest.skip("it takes several kernels, because a workgroup cannot keep its rows")
    outcome = outcome_of(case)
    assert outcome.bytes_of_bindings == outcome.bytes_compulsory
    assert outcome.bytes_moved >= outcome.bytes_compulsory
    assert outcome.bytes_moved <= _MOST_TIMES_COMPULSORY * outcome.bytes_compulsory + outcome.bytes_shared
