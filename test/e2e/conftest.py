"""Every call of a program that runs without IREE is made in IREE's runtime as well, and must give the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tilewright.runtime.direct import DirectSession
from tilewright.runtime.program import Program


@pytest.fixture(autouse=True, scope="session")
def both_runtimes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        direct_session = Program._direct_session

        def checked_session(program: Program) -> Any:
            direct = direct_session(program)
            return _Checked(direct, program) if direct is not None else None

        patch.setattr(Program, "_direct_session", checked_session)
        yield


class _Checked:
    """A session whose results are compared with IREE's."""

    def __init__(self, direct: DirectSession, program: Program) -> None:
        self._direct, self._program = direct, program

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        results = self._direct(arrays)
        by_iree = self._program.session()(arrays, self._program.signature)
        for number, (ours, theirs) in enumerate(zip(results, by_iree, strict=True)):
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            same = np.frombuffer(ours.tobytes(), np.uint8) == np.frombuffer(theirs.tobytes(), np.uint8)
            assert same.all(), f"result {number} differs from IREE's in {np.count_nonzero(~same)} bytes"
        return results

    def __getattr__(self, name: str) -> Any:
        return getattr(self._direct, name)
