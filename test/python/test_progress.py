"""While a model compiles, the command line says which step, pass or kernel it is at."""

from __future__ import annotations

import re
import threading

import pytest
from tilewright.api import progress
from tilewright.api.compilation import compile_with
from tilewright.api.progress import Steps, detail_of
from tilewright.records.options import CompileOptions
from tilewright.system.deadline import Deadline

from benchmarks.workloads import build

# A worker's note is shortened to what a reader follows.


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        (
            "pass 'tile-convert-to-vector' on builtin.module, at tile.program 'a' (x), kernel 3 of 12",
            "kernel 3 of 12",
        ),
        ("pass 'tile-form-subprograms' on builtin.module, at linalg.generic (softmax_3)", "planning"),
        ("pass 'tile-emit-object' on builtin.module", "emit object"),
        ("IREE's phase 'stream'", "IREE's phase 'stream'"),
        ("the request 'run'", ""),
    ],
)
def test_notes_are_shortened(note: str, shown: str) -> None:
    assert detail_of(note) == shown


# Passes and phases inside a step are reported behind the name of the step.


def test_details_are_reported_with_their_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LOOK_SECONDS", 0.001)
    said: list[str] = []
    is_there = threading.Event()

    def report(text: str) -> None:
        said.append(text)
        if text.startswith("compiling the rest:"):
            is_there.set()

    steps = Steps(report, Deadline(None))
    with steps.watch(lambda: "IREE's phase 'flow'"):
        steps.report("compiling the rest")
        assert is_there.wait(60)
    assert "compiling the rest: IREE's phase 'flow'" in said


# Kernels are counted while their code is generated.


def test_kernels_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LOOK_SECONDS", 0.0005)
    said: list[str] = []
    program = compile_with(CompileOptions(), build("gpt2-block"), "x86-64-avx2", progress=said.append)
    numbers = {found[1] for text in said if (found := re.search(r"kernel \d+ of (\d+)$", text))}
    assert numbers == {str(len(program.kernels))}
