"""Kernels for tests of the simulated device."""

from __future__ import annotations

from pathlib import Path

INPUTS = Path(__file__).resolve().parents[1] / "simulator" / "Inputs"


CORRECT = (INPUTS / "correct.mlir").read_text()
