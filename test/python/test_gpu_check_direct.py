"""The GPU check's calls without IREE, on a stand-in for the driver; what IREE and PyTorch would give is made up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_direct_cases import Placed, place
from tilewright.runtime.program import Program

from benchmarks.gpu_check import through_direct
from benchmarks.gpu_check.through_direct import DifferentBitsError, ThroughDirect, ThroughGraph
from benchmarks.peers import UnsupportedError
from benchmarks.workloads.builder import GraphBuilder


class Iree:
    """A session that gives these results."""

    def __init__(self, results: list[np.ndarray[Any, Any]]) -> None:
        self._results = results

    def bind(self, *_: Any) -> Any:
        class Call:
            outputs = staticmethod(lambda: self._results)

            def __call__(self) -> None:
                pass

        return Call()


@pytest.fixture
def placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Placed:
    g = GraphBuilder("softmax")
    g.output(g.op("Softmax", g.input("x", (3, 20))), (3, 20))
    made = place(g.build(), tmp_path, monkeypatch)
    monkeypatch.setattr(through_direct, "_CALLS", 2)
    monkeypatch.setattr(through_direct, "find_spec", lambda _: None)
    monkeypatch.setattr(
        through_direct, "ColdCache", lambda _: lambda: None
    )  # whose kernel the stand-in does not know
    results = made.program(*made.inputs)
    monkeypatch.setattr(Program, "session", lambda _: Iree(results))
    return made


@pytest.mark.parametrize("system", [ThroughDirect, ThroughGraph])
def test_results_are_those_of_all_ways(placed: Placed, system: type[ThroughDirect]) -> None:
    case: Any = SimpleNamespace(program=placed.program, inputs=placed.inputs)
    ready = system().prepare(case)
    placed.check(ready.outputs())
    timing = ready.time(seconds=0.01)
    assert timing.call_s > 0 and (timing.kernel_s is None) == (system is ThroughGraph)


def test_other_bits_in_iree_are_a_failure(placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    (result,) = placed.program(*placed.inputs)
    other = result.copy()
    other[-1, -1] = np.nextafter(other[-1, -1], np.float32(1))
    monkeypatch.setattr(Program, "session", lambda _: Iree([other]))
    case: Any = SimpleNamespace(program=placed.program, inputs=placed.inputs)
    with pytest.raises(DifferentBitsError, match="result 0 has other bits in IREE"):
        ThroughDirect().prepare(case).outputs()


def test_programs_that_need_iree_are_no_failure(placed: Placed) -> None:
    case: Any = SimpleNamespace(program=SimpleNamespace(runtime="iree"))
    with pytest.raises(UnsupportedError, match="IREE computes a part"):
        ThroughDirect().prepare(case)
