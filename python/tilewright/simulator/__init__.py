"""Simulated devices: kernels and whole programs on a simulated GPU, and traffic through simulated caches.

- `device`: runs one kernel on the simulated GPU and counts what it does
- `programs`: runs all kernels of a program in order on their real tensors
- `placement`, `foreign`: assign addresses to the tensors of a program, and compute IREE's part of it
- `movement`, `traffic`: replay the accesses of a CPU kernel on simulated caches
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.simulator.device import L2, SimulationReport, simulate
    from tilewright.simulator.programs import simulate_program

__all__ = ["L2", "SimulationReport", "simulate", "simulate_program"]

_LAZY = {"L2": "device", "SimulationReport": "device", "simulate": "device", "simulate_program": "programs"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tilewright.simulator' has no attribute {name!r}")
    return getattr(import_module(f"tilewright.simulator.{_LAZY[name]}"), name)
