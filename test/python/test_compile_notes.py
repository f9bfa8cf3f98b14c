"""Compilations that recover: what our stage or IREE cannot do is left out, with a note."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from conftest import running_sums_of_softmax
from tilewright.api.stitch import UnreadableError, _run
from tilewright.errors import PassError
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING
from tilewright.worker.process import Worker

Array = np.ndarray[Any, Any]


def test_what_our_stage_cannot_read_is_left_to_iree_with_a_note(
    monkeypatch: pytest.MonkeyPatch, model_path: Path, x: Array, expected: list[Array]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise UnreadableError("unknown attribute")

    monkeypatch.setattr("tilewright.api.fuse.stitch", refuse)
    program = tilewright.compile(model_path, threads=1)
    assert program.kernels == ()
    assert "left to IREE, because our stage cannot read it (unknown attribute)" in program.explain()
    np.testing.assert_allclose(program(x)[0], expected[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(tilewright.CompileError, match="unknown attribute"):
        tilewright.compile(model_path, threads=1, strict=True)


class _Refusing:
    """A stitching stage whose code exceeds the block memory a given number of times."""

    def __init__(self, times: int) -> None:
        self.pipelines: list[str] = []
        self._times = times

    def __call__(self, worker: Worker, text: str, pipeline: str, **rest: Any) -> str:
        self.pipelines.append(pipeline)
        if len(self.pipelines) > self._times:
            return _run(worker, text, pipeline, **rest)
        raise PassError(
            "a block needs 108928 bytes of shared memory; target 'cuda:rtx3090' has 101376: plan smaller tiles",
            numbers={"excess_block_bytes": 108928 - 101376},
        )


def test_a_plan_that_counts_too_little_memory_is_made_again_with_a_note(
    monkeypatch: pytest.MonkeyPatch, model_path: Path
) -> None:
    stage = _Refusing(times=2)
    monkeypatch.setattr("tilewright.api.stitch._run", stage)
    program = tilewright.compile(model_path, "cuda:rtx3090")
    assert ["block-bytes" in passes for passes in stage.pipelines] == [False, True, True]
    assert f"block-bytes={101376 - 2 * (108928 - 101376)}" in stage.pipelines[2]
    assert sum("planned again" in note for note in program.metadata.notes) == 2


def test_a_plan_that_always_counts_too_little_memory_is_an_error_if_strict(
    monkeypatch: pytest.MonkeyPatch, model_path: Path
) -> None:
    monkeypatch.setattr("tilewright.api.stitch._run", _Refusing(times=1000))
    with pytest.raises(PassError, match="a block needs 108928 bytes"):
        tilewright.compile(model_path, "cuda:rtx3090", strict=True)


def test_kernels_that_iree_cannot_take_are_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch, model_path: Path, x: Array, expected: list[Array]
) -> None:
    resume = IreeCompiler.resume

    def refuse(self: IreeCompiler, source: bytes, *arguments: Any, **options: Any) -> bytes:
        if b"flow.dispatch" in source:
            raise tilewright.IreeError("no kernels, please")
        return resume(self, source, *arguments, **options)

    monkeypatch.setattr(IreeCompiler, "resume", refuse)
    program = tilewright.compile(model_path, threads=1)
    assert program.kernels == ()
    assert "none of our kernels is in the program" in program.explain()
    np.testing.assert_allclose(program(x)[0], expected[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(tilewright.IreeError, match="no kernels, please"):
        tilewright.compile(model_path, threads=1, strict=True)


def test_data_tiling_goes_off_where_iree_fails_with_it(
    monkeypatch: pytest.MonkeyPatch, model_path: Path, x: Array, expected: list[Array]
) -> None:
    resume = IreeCompiler.resume

    def refuse(self: IreeCompiler, source: bytes, *arguments: Any, flags: Any, **options: Any) -> bytes:
        if DATA_TILING in flags:
            raise tilewright.IreeError("no tiling, please")
        return resume(self, source, *arguments, flags=flags, **options)

    monkeypatch.setattr(IreeCompiler, "resume", refuse)
    program = tilewright.compile(model_path, threads=1)
    assert len(program.kernels) == 1
    assert DATA_TILING not in program.metadata.iree_flags
    assert "data tiling is off" in program.explain()
    np.testing.assert_allclose(program(x)[0], expected[0], rtol=1e-5, atol=1e-6)


def test_every_op_that_stays_with_iree_is_said() -> None:
    program = tilewright.compile(running_sums_of_softmax(), threads=1)
    assert "iree_linalg_ext.scan: not a tensor expression (sums)" in program.explain()
