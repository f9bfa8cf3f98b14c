"""Runs of the onnx package's own tests of every operator: each result is right or refused, and never wrong.

A refused test does not fail, but the end of a run reports the number of these. All tests of one operator are one test
here, because making all of them takes seconds in every process that runs tests.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest
from compiled import ahead
from onnx_node_cases import operators
from tilewright.worker.process import Worker, WorkerDied

# A test takes a second; the limit allows for a machine that is busy, or stops this process while it measures others.
_LIMIT_SECONDS = 900.0
# Tests of these operators land: movement, contraction, windows, reductions, a loop, bytes.
_LANDING = ("concat", "gemm", "maxpool", "reducemean", "rnn", "slice", "dequantizelinear", "where")
# At most so many of an operator land, drawn by their names.
_LANDING_OF_OPERATOR = 4
_PARAMETERS = [pytest.param(name, marks=[] if name in _LANDING else pytest.mark.full) for name in operators()]


@dataclass
class _Verdicts:
    """Names of an operator's tests with reasons, by verdict."""

    right: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    not_judged: dict[str, str] = field(default_factory=dict)

    def by_kind(self) -> dict[str, dict[str, str]]:
        return {
            "right": self.right,
            "refused": self.refused,
            "wrong": self.wrong,
            "not judged": self.not_judged,
        }


@pytest.fixture(scope="module")
def verdicts_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], _Verdicts]]:
    folder = tmp_path_factory.mktemp("node-tests")
    most = None if request.config.getoption("--all") else _LANDING_OF_OPERATOR
    idle: SimpleQueue[Worker] = SimpleQueue()

    def judge(operator: str) -> _Verdicts:
        try:
            worker = idle.get_nowait()
        except Empty:
            worker = Worker(folder, module="onnx_node_cases", limit_seconds=_LIMIT_SECONDS)
        try:
            return _judge(worker, operator, most=most)
        finally:
            idle.put(worker)

    with pytest.MonkeyPatch.context() as patch:
        here = str(Path(__file__).parent)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")])))
        yield from ahead(request, "operator", judge)
    while not idle.empty():
        idle.get().close()


def _judge(worker: Worker, operator: str, *, most: int | None) -> _Verdicts:
    """Judges the tests of an operator, or at most so many of them."""
    verdicts = _Verdicts()
    names, _, log = worker.ask({"request": "onnx_node_cases:answer_names", "operator": operator})
    assert "names" in names, f"{names.get('error')}\n{log}"
    for name in sorted(names["names"], key=lambda name: zlib.crc32(name.encode()))[:most]:
        try:
            answer, _, _ = worker.ask(
                {"request": "onnx_node_cases:answer_judge", "operator": operator, "case": name}
            )
        except WorkerDied as death:
            verdicts.wrong[name] = f"the process {death.how}"
            continue
        # An error that is not ours has no verdict.
        reason = answer.get("reason") or answer.get("trace", "")
        verdicts.by_kind()[answer.get("verdict", "wrong")][name] = reason
    return verdicts


@pytest.mark.parametrize("operator", _PARAMETERS)
def test_right_or_refused(
    operator: str, verdicts_of: Callable[[str], _Verdicts], record_property: Callable[[str, object], None]
) -> None:
    verdicts = verdicts_of(operator)
    record_property(
        "counts", {f"ONNX node tests {kind}": len(names) for kind, names in verdicts.by_kind().items()}
    )
    for name, reason in verdicts.refused.items():
        print(f"{name}: refused: {reason}")
    assert verdicts.wrong == {}
