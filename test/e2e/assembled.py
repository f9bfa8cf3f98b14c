"""What `ptxas` says of kernels that were dumped."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tilewright.system.ptxas import find_ptxas


def check_warpgroups(folder: Path) -> None:
    """Nothing is spilled, and products of warpgroups go on by themselves: the assembler warns where they cannot."""
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    command = [str(find_ptxas()), "-arch=sm_90a", "-v", str(folder / "kernels.ptx"), "-o", "/dev/null"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert " 0 bytes spill stores, 0 bytes spill loads" in said
    assert "serialized" not in said
