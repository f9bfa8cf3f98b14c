"""Tests of the benchmark models: they are as accurate as ONNX Runtime, in fewer kernels than IREE alone makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from compiled import Launches, ahead, compiled
from tilewright.reference.oracle import Array, float64_reference, ort_reference, random_inputs, relative_error

from benchmarks.workloads import WORKLOADS

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

# BERT-base has the layers of bert-small, larger and more of them; `scripts/demo.sh` runs it. IREE cannot tile dien's
# products, 36 wide, beside our kernels; then none of ours is used, which `compiled` refuses.
_MODELS = [w.name for w in WORKLOADS.values() if w.suite == "models" and not w.is_large and w.name != "dien"]
_TRANSFORMERS = [name for name in _MODELS if name.startswith(("bert", "gpt2", "llama", "conformer"))]

_TIMES_ONNX_RUNTIME = 2.0
# This is the bound where ONNX Runtime happens to be nearly exact.
_SMALL_ERROR = 1e-6
_LEAST_SHARE_OF_BYTES = 0.9


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    errors: list[float]
    errors_of_onnx_runtime: list[float]
    launches: Launches
    launches_of_iree_alone: Launches
    bytes_ours: int
    bytes_of_iree: int
    """Bytes of ops in IREE's own kernels, without contractions."""


def _run(name: str) -> _Outcome:
    model = WORKLOADS[name].build()
    inputs = random_inputs(model, 0)
    expected = float64_reference(model, inputs)

    def errors(outputs: Sequence[Array]) -> list[float]:
        return [relative_error(y, y64) for y, y64 in zip(outputs, expected, strict=True)]

    with compiled(model) as result:
        coverage = result.program.metadata.report.coverage
        taken = coverage["bytes_taken"]
        return _Outcome(
            errors=errors(result.program(*inputs)),
            errors_of_onnx_runtime=errors(ort_reference(model, inputs)),
            launches=result.launches(),
            launches_of_iree_alone=result.launches_of_iree_alone(),
            bytes_ours=taken,
            bytes_of_iree=coverage["bytes_eligible"] - taken,
        )


@pytest.fixture(scope="module")
def outcome_of(request: pytest.FixtureRequest, cpu_target: str) -> Iterator[Callable[[str], _Outcome]]:
    yield from ahead(request, "name", _run)


@pytest.mark.parametrize("name", _MODELS)
def test_model_is_as_precise_as_onnx_runtime(name: str, outcome_of: Callable[[str], _Outcome]) -> None:
    outcome = outcome_of(name)
    for error, peer in zip(outcome.errors, outcome.errors_of_onnx_runtime, strict=True):
        assert error <= max(_TIMES_ONNX_RUNTIME * peer, _SMALL_ERROR)


@pytest.mark.parametrize("name", _TRANSFORMERS)
def test_transformer_has_fewer_kernels_than_with_iree_alone(
    name: str, outcome_of: Callable[[str], _Outcome]
) -> None:
    outcome = outcome_of(name)
    assert outcome.launches.ours > 0
    assert outcome.launches.dispatches < outcome.launches_of_iree_alone.dispatches


@pytest.mark.parametrize("name", [name for name in _MODELS if name.startswith("cnn")])
def test_cnn_has_no_more_kernels_than_with_iree_alone(
    name: str, outcome_of: Callable[[str], _Outcome]
) -> None:
    outcome = outcome_of(name)
    assert outcome.launches.dispatches <= outcome.launches_of_iree_alone.dispatches


@pytest.mark.parametrize("name", _TRANSFORMERS)
def test_bytes_of_transformer_move_in_our_kernels(name: str, outcome_of: Callable[[str], _Outcome]) -> None:
    outcome = outcome_of(name)
    assert outcome.bytes_ours >= _LEAST_SHARE_OF_BYTES * (outcome.bytes_ours + outcome.bytes_of_iree) > 0
