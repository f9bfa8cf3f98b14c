"""Every call of a program that runs without IREE is made in IREE's runtime as well, and must give the same bits."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
import pytest
from tilewright.records.signature import Array
from tilewright.runtime.direct import DirectSession
from tilewright.runtime.program import Program


@pytest.fixture(autouse=True)
def both_runtimes(monkeypatch: pytest.MonkeyPatch) -> None:
    owners: weakref.WeakKeyDictionary[DirectSession, weakref.ref[Program]] = weakref.WeakKeyDictionary()
    find, call = Program._direct_session, DirectSession.__call__

    def found(program: Program) -> DirectSession | None:
        session = find(program)
        if session is not None:
            owners[session] = weakref.ref(program)
        return session

    def called(session: DirectSession, arrays: Sequence[Array]) -> list[Array]:
        results = call(session, arrays)
        program = owners[session]() if session in owners else None
        if program is not None:
            _compare(results, program.session()(arrays, program.signature))
        return results

    monkeypatch.setattr(Program, "_direct_session", found)
    monkeypatch.setattr(DirectSession, "__call__", called)


def _compare(results: Sequence[Array], by_iree: Sequence[Array]) -> None:
    for number, (ours, theirs) in enumerate(zip(results, by_iree, strict=True)):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        same = np.frombuffer(ours.tobytes(), np.uint8) == np.frombuffer(theirs.tobytes(), np.uint8)
        assert same.all(), f"result {number} differs from IREE's in {np.count_nonzero(~same)} bytes"
