"""Tests of random graphs against float64, and of how much of them our kernels run.

A graph counts as a test of our code generation only if our kernels ran at least 90% of its eligible ops. This is
judged twice: by the compiler's own report, and by what the program launches, where IREE's part must be tiny. `python
-m fuzz` judges any number of further graphs; see docs/design/testing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest
from compiled import Launches, ahead, compiled, selected
from onnx import ModelProto

from fuzz.graphs import random_graph
from fuzz.hunt import GRAPHS_PER_MODULE
from fuzz.judge import LEAST_SHARE, Expected, Verdict, compare
from fuzz.merge import merge

pytestmark = pytest.mark.cpu_levels

_SEEDS = range(0, 512, GRAPHS_PER_MODULE)
# These seeds land, each for one feature level.
_LANDING_SEEDS = _SEEDS[:4]
_PARAMETERS = [
    pytest.param(first, marks=[] if first in _LANDING_SEEDS else pytest.mark.full) for first in _SEEDS
]

# The remaining graphs have movement between inputs and outputs that nothing computes with, or fold to constants.
_LEAST_SHARE_OF_GRAPHS = 0.95
_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """Results of the graphs of a module, and the launches that computed them."""

    verdicts: Mapping[str, Verdict]
    bytes_left: int
    """Bytes that IREE's own kernels move."""
    ops_in_models: int
    launches: Launches

    @property
    def foreign(self) -> int:
        """Number of IREE's own launches, without fills of constants that our kernels read, which belong to no op of
        the model."""
        return self.launches.others + self.launches.copies


def _run(first: int) -> _Outcome:
    seeds = {f"g{seed}": seed for seed in range(first, first + GRAPHS_PER_MODULE)}
    models = {name: random_graph(seed) for name, seed in seeds.items()}
    expected = {name: Expected.of(model, seeds[name]) for name, model in models.items()}
    with compiled(merge(models)) as result:
        outputs = result.program(*(array for part in expected.values() for array in part.inputs))
        report = result.program.metadata.report
        return _Outcome(
            verdicts=compare(expected, outputs, report),
            bytes_left=report.coverage["bytes_eligible"] - report.coverage["bytes_taken"],
            ops_in_models=sum(map(_computing_ops, models.values())),
            launches=result.launches(),
        )


def _computing_ops(model: ModelProto) -> int:
    """Counts the ops independently of the compiler, so that an op cannot be declared ineligible to pass."""
    return sum(node.op_type not in _VIEWS for node in model.graph.node)


@pytest.fixture(scope="module")
def outcome_of(request: pytest.FixtureRequest, cpu_target: str) -> Iterator[Callable[[int], _Outcome]]:
    yield from ahead(request, "first", _run)


@pytest.mark.parametrize("first", _PARAMETERS)
def test_random_graphs_match_float64(first: int, outcome_of: Callable[[int], _Outcome]) -> None:
    assert {name: v.message for name, v in outcome_of(first).verdicts.items() if v.failed} == {}


@pytest.mark.parametrize("first", _PARAMETERS)
def test_report_agrees_with_what_is_launched(first: int, outcome_of: Callable[[int], _Outcome]) -> None:
    """IREE launches nothing if, and only if, the report says that every eligible op is ours."""
    outcome = outcome_of(first)
    assert outcome.launches.ours > 0
    nothing_left = all(v.taken == v.eligible for v in outcome.verdicts.values()) and not outcome.bytes_left
    assert nothing_left == (outcome.foreign == 0)


@pytest.mark.parametrize("first", _PARAMETERS)
def test_iree_launches_next_to_nothing(first: int, outcome_of: Callable[[int], _Outcome]) -> None:
    """Every dispatch and copy of IREE's accounts for at least one op of the models."""
    outcome = outcome_of(first)
    assert outcome.foreign <= (1 - LEAST_SHARE) * outcome.ops_in_models


def test_most_graphs_count(request: pytest.FixtureRequest, outcome_of: Callable[[int], _Outcome]) -> None:
    seeds = selected(request, "first") or _LANDING_SEEDS
    verdicts = {name: v for first in seeds for name, v in outcome_of(first).verdicts.items()}
    left_out = [name for name, verdict in verdicts.items() if not verdict.counts]
    assert len(left_out) <= (1 - _LEAST_SHARE_OF_GRAPHS) * len(verdicts), left_out
