"""Programs that are compiled without a module for IREE (deploy=False), and get one when it is needed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from cuda_direct_cases import place, two_softmaxes
from tilewright.iree.compiler import IreeCompiler

from benchmarks.workloads.builder import GraphBuilder

Array = np.ndarray[Any, Any]


@pytest.fixture
def phases(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The phases at which IREE's compiler stops; None: it makes a module."""
    stops: list[str | None] = []
    compile_ = IreeCompiler._compile

    def noted(self: IreeCompiler, source: bytes, **options: Any) -> bytes:
        stops.append(options["stop"])
        return compile_(self, source, **options)

    monkeypatch.setattr(IreeCompiler, "_compile", noted)
    return stops


def test_it_runs_without_irees_back_end_and_gives_the_same_bits(
    model_path: Path, x: Array, phases: list[str | None]
) -> None:
    here = tilewright.compile(model_path, threads=1, deploy=False, cache=False)
    assert phases == ["preprocessing"] and here.runtime == "direct"
    deployed = tilewright.compile(model_path, threads=1, cache=False)
    for one, other in zip(here(x), deployed(x), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_module_is_made_when_it_is_needed(
    model_path: Path, x: Array, tmp_path: Path, phases: list[str | None]
) -> None:
    here = tilewright.compile(model_path, threads=1, deploy=False, cache=False)
    expected = here(x)
    assert None not in phases
    loaded = tilewright.load(here.save(tmp_path / "saved.vmfb"))
    in_iree = here.session()([x], here.signature)
    assert phases.count(None) == 1
    for result, again, iree in zip(expected, loaded(x), in_iree, strict=True):
        np.testing.assert_array_equal(result, again)
        np.testing.assert_array_equal(result, iree)


def test_it_is_kept_in_the_cache_and_in_a_pickle(model_path: Path, x: Array, tmp_path: Path) -> None:
    for cached in (False, True):
        program = tilewright.compile(model_path, threads=1, deploy=False, cache=tmp_path)
        assert any("from the compilation cache" in note for note in program.cache_notes) == cached
        assert not program.metadata.is_deployable
    copy = pickle.loads(pickle.dumps(program))
    np.testing.assert_array_equal(copy(x)[0], program(x)[0])
    assert copy.metadata.is_deployable


def test_a_program_that_needs_iree_gets_its_module_at_once(tmp_path: Path) -> None:
    g = GraphBuilder("running_sums")
    g.output(g.op("CumSum", g.input("x", (4, 157)), g.ints([1])), (4, 157))
    path = tmp_path / "running_sums.onnx"
    onnx.save(g.build(), path)
    program = tilewright.compile(path, threads=1, deploy=False, cache=False)
    assert program.metadata.is_deployable and program.runtime == "iree"
    assert "calls run in IREE's runtime, because IREE computes the program" in program.explain()
    x = np.random.default_rng(0).standard_normal((4, 157)).astype(np.float32)
    np.testing.assert_allclose(program(x)[0], np.cumsum(x, axis=1, dtype=np.float64), rtol=0, atol=1e-4)


def test_on_a_gpu_its_file_is_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = place(two_softmaxes(), tmp_path, monkeypatch, deploy=False)
    assert not placed.program.metadata.is_deployable
    placed.check(placed.program(*placed.inputs))
