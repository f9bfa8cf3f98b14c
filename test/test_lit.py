"""The lit suite (passes, analyses, dialect, unit tests) as one Python test, so that one command runs all tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIT = Path("/usr/lib/llvm-22/bin/lit")


def test_lit_suite() -> None:
    build = Path(os.environ.get("TILEWRIGHT_BUILD", ROOT / "build"))
    if not (build / "test" / "lit.site.cfg.py").exists():
        pytest.fail(
            f"{build} holds no build with tests: run scripts/setup.sh, or name one in TILEWRIGHT_BUILD"
        )
    result = subprocess.run(
        [LIT, "-v", "--no-progress-bar", build / "test"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
