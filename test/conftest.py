"""What all Python tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tilewright


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
