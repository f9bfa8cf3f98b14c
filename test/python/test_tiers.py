"""The test tiers: those that run by default, those that `--all` adds, and feature levels that this machine lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import cpu_levels
import numpy as np
import pytest
import tilewright

from benchmarks.workloads import stitch

ROOT = Path(__file__).resolve().parents[2]
_MODULE = ROOT / "test" / "e2e" / "test_horizontal.py"


def _collected(*arguments: str) -> dict[str, set[str]]:
    """Returns the tests of a module, each with the feature levels that it is collected for."""
    command = [sys.executable, "-m", "pytest", str(_MODULE), "--collect-only", "-q", *arguments]
    search = os.pathsep.join(path for path in sys.path if path)
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": search},
        check=True,
    )
    tests: dict[str, set[str]] = {}
    for line in ran.stdout.splitlines():
        level = next((level for level in cpu_levels.LEVELS if f"[{level}" in line), None)
        if level is not None:
            tests.setdefault(line.replace(level, "", 1), set()).add(level)
    return tests


def test_each_test_lands_for_one_level_and_all_are_sampled() -> None:
    landing, everything = _collected(), _collected("--all")
    assert landing.keys() == everything.keys() != set()
    assert {len(levels) for levels in landing.values()} == {1}
    assert all(levels == set(cpu_levels.LEVELS) for levels in everything.values())
    assert Counter(level for levels in landing.values() for level in levels).keys() == set(cpu_levels.LEVELS)


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-avx2"])
def test_a_level_stands_for_this_machine(level: str) -> None:
    with cpu_levels.standing_for_cpu(level):
        program = tilewright.compile(stitch.softmax((3, 7)), threads=1)
    assert program.metadata.target == level
    assert cpu_levels.current() == "cpu"
    assert tilewright.compile(stitch.softmax((3, 7)), threads=1).metadata.target == "cpu"


def test_results_are_kept_for_each_level() -> None:
    calls = []

    @cpu_levels.cached
    def level_and(number: int) -> tuple[str, int]:
        calls.append(number)
        return cpu_levels.current(), number

    with cpu_levels.standing_for_cpu("x86-64-v2"):
        assert level_and(1) == level_and(1) == ("x86-64-v2", 1)
    assert level_and(1) == ("cpu", 1)
    assert calls == [1, 1]


def test_a_level_that_the_machine_lacks_is_compiled_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = frozenset({"ssse3", "sse41", "sse42", "popcnt"})
    monkeypatch.setattr("tilewright.runtime.processor._processor_flags", lambda: flags)
    x = np.zeros((3, 7), np.float32)
    with cpu_levels.standing_for_cpu("x86-64-avx512"):
        program = tilewright.compile(stitch.softmax((3, 7)), threads=1, strict=True)
        assert program.kernels and program.module_path.stat().st_size > 0
        with pytest.raises(
            pytest.skip.Exception, match=r"compiled for x86-64-avx512 and not run: .* lacks avx"
        ):
            program(x)
    # Outside of such a test, the program itself reports it.
    with pytest.raises(tilewright.ProgramError, match="this machine lacks"):
        program(x)


def test_an_error_while_compiling_for_such_a_level_is_no_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.runtime.processor._processor_flags", lambda: frozenset({"sse42"}))
    with cpu_levels.standing_for_cpu("x86-64-avx512"), pytest.raises(tilewright.TilewrightError):
        tilewright.compile("func.func @broken(", threads=1)
