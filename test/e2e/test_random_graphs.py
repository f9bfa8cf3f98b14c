"""Random graphs against float64, and how much of them runs in our kernels.

A graph counts as a test of our code generation only if our kernels ran at least 90% of what was there to run. That is
judged twice: by the compiler's own report, and by what the program launches, of which IREE's part must be next to
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from compiled import Launches, ahead, compiled
from generate import random_graph
from onnx import ModelProto
from tilewright.oracle import float64_reference, model_tolerance, random_inputs, relative_error

Key = tuple[str, int]

_HOST_SEEDS = range(256)
# AVX2 is a subset of what any x86-64 machine that runs these tests has.
_AVX2_SEEDS = range(400, 440)
_KEYS: list[Key] = [*(("cpu", s) for s in _HOST_SEEDS), *(("x86-64-avx2", s) for s in _AVX2_SEEDS)]

_LEAST_SHARE_OF_OPS = 0.9
# The rest have movement between inputs and outputs that nothing computes with, or fold to constants.
_LEAST_SHARE_OF_GRAPHS = 0.95
_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """What a graph computed, and where."""

    errors: list[float]
    tolerance: float
    ops_taken: int
    ops_eligible: int
    bytes_left: int
    """Moved by IREE's own kernels."""
    ops_in_model: int
    launches: Launches

    @property
    def counts(self) -> bool:
        """Every dispatch and copy of IREE's stands for at least one op of the model."""
        return (
            self.launches.ours > 0
            and self.ops_taken >= _LEAST_SHARE_OF_OPS * self.ops_eligible
            and self.foreign <= (1 - _LEAST_SHARE_OF_OPS) * self.ops_in_model
        )

    @property
    def foreign(self) -> int:
        """What IREE launches itself; fills of constants that our kernels read are no op of the model."""
        return self.launches.others + self.launches.copies


def _run(key: Key) -> _Outcome:
    target, seed = key
    model = random_graph(seed)
    inputs = random_inputs(model, seed)
    expected = float64_reference(model, inputs)
    with compiled(model, target=target) as result:
        outputs = result.program(*inputs)
        coverage = result.program.metadata.report.coverage
        return _Outcome(
            errors=[relative_error(y, y64) for y, y64 in zip(outputs, expected, strict=True)],
            tolerance=model_tolerance(model),
            ops_taken=coverage["ops_taken"],
            ops_eligible=coverage["ops_eligible"],
            bytes_left=coverage["bytes_eligible"] - coverage["bytes_taken"],
            ops_in_model=_computing_ops(model),
            launches=result.launches(),
        )


def _computing_ops(model: ModelProto) -> int:
    """Counted here, so that ops are not defined away by calling them not eligible."""
    return sum(node.op_type not in _VIEWS for node in model.graph.node)


@pytest.fixture(scope="module")
def outcome_of(request: pytest.FixtureRequest) -> Iterator[Callable[[Key], _Outcome]]:
    yield from ahead(request, "key", _run)


@pytest.mark.parametrize("key", _KEYS, ids=lambda key: f"{key[0]}-{key[1]}")
def test_random_graph_matches_float64(key: Key, outcome_of: Callable[[Key], _Outcome]) -> None:
    outcome = outcome_of(key)
    assert max(outcome.errors) <= outcome.tolerance


@pytest.mark.parametrize("key", _KEYS, ids=lambda key: f"{key[0]}-{key[1]}")
def test_report_agrees_with_what_is_launched(key: Key, outcome_of: Callable[[Key], _Outcome]) -> None:
    """Where the report says that every eligible op is ours, IREE has nothing left to run, and the other way round."""
    outcome = outcome_of(key)
    if outcome.launches.ours:
        nothing_left = outcome.ops_taken == outcome.ops_eligible and not outcome.bytes_left
        assert nothing_left == (outcome.foreign == 0)


def test_most_graphs_count(outcome_of: Callable[[Key], _Outcome]) -> None:
    left_out = [f"{key[0]}-{key[1]}" for key in _KEYS if not outcome_of(key).counts]
    assert len(left_out) <= (1 - _LEAST_SHARE_OF_GRAPHS) * len(_KEYS), left_out
