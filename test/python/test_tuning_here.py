"""Tuning for the GPU of this machine, which a fake of the driver's library stands for: no bundle is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import tilewright
from fake_cuda import FakeCuda
from test_tuning_gpu import RatedCuda
from tilewright.runtime import cuda
from tilewright.tuning import timer as timing
from tilewright.tuning.database import Database
from tilewright.tuning.timer import Build, TimingError

from benchmarks.workloads.builder import GraphBuilder

TARGET = "cuda:h200"


class TimerHere:
    """Times builds as the timer's process does, in this one."""

    def __enter__(self) -> TimerHere:
        return self

    def __exit__(self, *_: Any) -> None: ...

    def seconds(self, build: Build) -> float:
        header = {"weights": build.weights, "evicts_bytes": build.evicts_bytes, "threads": 1, "on_gpu": True}
        reply, _ = timing.answer({"folder": str(build.folder), **header}, b"")
        if not reply["ok"]:
            raise TimingError(reply["error"])
        return float(reply["seconds"])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    g = GraphBuilder("rows")
    g.output(g.op("Softmax", g.input("x", (512, 96)), axis=-1), (512, 96))
    path = tmp_path / "rows.onnx"
    onnx.save(g.build(), path)
    return path


def test_plans_are_timed_by_the_clock_of_the_gpu(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake rates the plan that is made without measurements as three times as slow as others."""
    before = tilewright.compile(model, TARGET, tuning=False, cache=False)
    disliked = before.kernels[0].workgroups
    monkeypatch.setattr(cuda, "open_driver", lambda: RatedCuda(disliked))
    timing._gpu.cache_clear()
    timing._prepared.clear()
    database = tmp_path / "tuned.db"
    result = tilewright.tune(model, TARGET, database=database, candidates=6, jobs=1, timer=TimerHere())
    (tuned,) = result.subprograms
    assert tuned.decision.ratio == pytest.approx(1 / 3, rel=1e-3)
    with Database(database) as kept:
        assert {decision.target for decision in kept.decisions()} == {TARGET}
    after = tilewright.compile(model, TARGET, tuning=database, cache=False)
    assert after.kernels[0].measured
    assert after.kernels[0].workgroups != disliked


def test_a_gpu_of_another_kind_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "open_driver", lambda: FakeCuda(capability=(8, 0)))
    with pytest.raises(
        tilewright.TuningError, match=r"has compute capability 8\.0, and cuda:h200 is sm_90.*--bundle"
    ):
        tilewright.tune(model, TARGET)
