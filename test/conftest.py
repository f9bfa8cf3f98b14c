"""What all Python tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import tilewright
from tilewright import stitch
from tilewright.fallback import next_attempt


@pytest.fixture(scope="session", autouse=True)
def _no_measured_plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the user of this machine tuned must not change what tests compile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_TUNING", str(tmp_path_factory.mktemp("tuning") / "none.db"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _kept_compilers(_no_measured_plans: None) -> Iterator[None]:
    """Most of what tests compile is small, and starting the compilers' process takes a good part of that."""
    with tilewright.keep_compilers():
        yield


_may_fall_back = False


@pytest.fixture(scope="session", autouse=True)
def _failing_passes_are_errors() -> Iterator[None]:
    """A compilation survives a pass that fails on one of its kernels. A test does not, unless it is about that."""

    def next_or_raise(error: tilewright.PassError, *arguments: Any, **keywords: Any) -> Any:
        if not _may_fall_back:
            raise error
        return next_attempt(error, *arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stitch, "next_attempt", next_or_raise)
        yield


@pytest.fixture
def may_fall_back() -> Iterator[None]:
    """Lets compilations of a test go on where a pass fails on a kernel, as they do for users."""
    global _may_fall_back
    _may_fall_back = True
    yield
    _may_fall_back = False
