"""Checks of dumped kernels with `ptxas`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tilewright.system.ptxas import find_ptxas


def check_warpgroups(folder: Path) -> None:
    """Checks that nothing is spilled, and that wgmma runs asynchronously: the assembler warns where it cannot."""
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    command = [str(find_ptxas()), "-arch=sm_90a", "-v", str(folder / "kernels.ptx"), "-o", "/dev/null"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert " 0 bytes spill stores, 0 bytes spill loads" in said
    assert "serialized" not in said
