"""A named model, and the error for a name that does not exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import onnx

from benchmarks.workloads.narrow import to_narrow


class WorkloadError(ValueError):
    """The requested workload does not exist."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A named model. `build` returns a fresh, deterministic ModelProto."""

    name: str
    build: Callable[[], onnx.ModelProto]
    description: str
    suite: str
    dtype: str = "f32"
    is_large: bool = False
    """True if the workload is too large for tests that do not measure."""

    def in_type(self, dtype: str) -> Workload:
        """Returns the same workload in f32, bf16 or f16; it keeps its name."""
        if dtype == self.dtype:
            return self
        return replace(self, build=lambda: to_narrow(self.build(), dtype), dtype=dtype)
