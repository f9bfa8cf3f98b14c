"""Tests of IREE's part of programs that run without IREE: each call is made in IREE's runtime as well, and must give
the same bits.

IREE's back end takes half of the time of a compilation. Therefore, of the tests that land, one in `_ONE_IN` does this,
and the others compile with `deploy=False`; `--all` does it for every test.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright.api import compilation
from tilewright.records.options import CompileOptions
from tilewright.records.signature import Array
from tilewright.runtime.direct import DirectSession
from tilewright.runtime.program import Program

_ONE_IN = 4


@pytest.fixture(autouse=True)
def runtimes(request: pytest.FixtureRequest, cpu_target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = zlib.crc32(request.node.nodeid.encode()) % _ONE_IN == 0
    if drawn or request.config.getoption("--all"):
        _call_both(monkeypatch)
    else:
        _leave_out_iree(monkeypatch)


def _leave_out_iree(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_with = compilation.compile_with

    def compile_for_here(options: CompileOptions, *arguments: Any, **named: Any) -> tilewright.Program:
        return compile_with(replace(options, deploy=False), *arguments, **named)

    monkeypatch.setattr(compilation, "compile_with", compile_for_here)


def _call_both(monkeypatch: pytest.MonkeyPatch) -> None:
    owners: weakref.WeakKeyDictionary[DirectSession, weakref.ref[Program]] = weakref.WeakKeyDictionary()
    find, call, run_fitting = Program._direct_session, DirectSession.__call__, DirectSession.run_fitting

    def found(program: Program) -> DirectSession | None:
        session = find(program)
        if session is not None:
            owners[session] = weakref.ref(program)
        return session

    def compare(session: DirectSession, arrays: Sequence[Array], results: list[Array]) -> list[Array]:
        program = owners[session]() if session in owners else None
        if program is not None:
            _compare(results, program.session()(arrays, program.signature))
        return results

    def called(session: DirectSession, arrays: Sequence[Array]) -> list[Array]:
        return compare(session, arrays, call(session, arrays))

    def ran_fitting(session: DirectSession, arrays: Sequence[Any]) -> list[Array] | None:
        results = run_fitting(session, arrays)
        return None if results is None else compare(session, arrays, results)

    monkeypatch.setattr(Program, "_direct_session", found)
    # The quick way of a program would pass over `found`.
    monkeypatch.setattr(Program, "_quick", property(lambda _: None, lambda *_: None))
    monkeypatch.setattr(DirectSession, "__call__", called)
    monkeypatch.setattr(DirectSession, "run_fitting", ran_fitting)


def _compare(results: Sequence[Array], by_iree: Sequence[Array]) -> None:
    for number, (ours, theirs) in enumerate(zip(results, by_iree, strict=True)):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        same = np.frombuffer(ours.tobytes(), np.uint8) == np.frombuffer(theirs.tobytes(), np.uint8)
        assert same.all(), f"result {number} differs from IREE's in {np.count_nonzero(~same)} bytes"
