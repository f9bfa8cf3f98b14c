"""A program for a GPU that several tests read."""

from __future__ import annotations

from pathlib import Path

import pytest
import tilewright


@pytest.fixture(scope="module")
def on_h200(model_path: Path) -> tilewright.Program:
    return tilewright.compile(model_path, target="cuda:h200")
