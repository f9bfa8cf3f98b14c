"""The process of one system: checks and times the requested workloads (see `benchmarks.client`)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from benchmarks.child import Answer, Server, serve
from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.timing import Timing
from benchmarks.peers import Array

OURS_BARE, OURS_DIRECT, OURS_GRAPH, OURS_IREE = "kernels", "direct", "direct-graph", "iree"
TORCH, TORCH_COMPILE, TORCH_AUTOTUNE, TORCH_SDPA = (
    "torch",
    "torch-compile",
    "torch-max-autotune",
    "torch-sdpa",
)
TRITON, JAX = "triton", "jax"

OURS = (OURS_BARE, OURS_DIRECT, OURS_GRAPH, OURS_IREE)
"""Systems that run our kernels; the others are peers."""

SYSTEMS = {
    OURS_BARE: "benchmarks.gpu_check.bare:BareKernels",
    OURS_DIRECT: "benchmarks.gpu_check.through_direct:ThroughDirect",
    OURS_GRAPH: "benchmarks.gpu_check.through_direct:ThroughGraph",
    OURS_IREE: "benchmarks.gpu_check.through_iree:ThroughIree",
    TORCH: "benchmarks.gpu_check.through_torch:TorchEager",
    TORCH_SDPA: "benchmarks.gpu_check.through_sdpa:TorchSdpa",
    TORCH_COMPILE: "benchmarks.gpu_check.through_torch:TorchCompile",
    TORCH_AUTOTUNE: "benchmarks.gpu_check.through_torch:TorchMaxAutotune",
    TRITON: "benchmarks.gpu_check.through_triton:TritonMatmul",
    JAX: "benchmarks.gpu_check.through_jax:Jax",
}
"""Class of each system as `module:name`, by its name; the system's own process imports it."""


class Ready(Protocol):
    """Protocol of a workload with its inputs and weights on the GPU."""

    def outputs(self) -> list[Array] | None:
        """Returns the outputs of one run; None if the system computes only a part of them."""

    def time(self, *, seconds: float) -> Timing:
        """Returns the times of a run."""


class System(Protocol):
    """Protocol of a system that runs workloads on a GPU."""

    def versions(self) -> dict[str, Any]:
        """Returns the versions of all relevant packages."""

    def prepare(self, case: Case) -> Ready:
        """Compiles and loads a workload."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves the system named on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("reference", help="module:class of the system")
    parser.add_argument("settings", help="for all peers alike; unused")
    serve(SystemServer(parser.parse_args(arguments).reference))


class SystemServer(Server):
    """Serves one system and the workload that it has loaded."""

    def __init__(self, reference: str) -> None:
        self._reference = reference
        self._system: Any = None
        self._ready: Any = None

    def _start(self) -> Answer:
        module, _, name = self._reference.partition(":")
        self._system = getattr(import_module(module), name)()
        return {"versions": self._system.versions()}

    def _copy(self) -> Answer:
        return {"gb_per_s": self._system.copy_gb_per_s()}

    def _check(self, folder: str, entry: dict[str, Any]) -> Answer:
        """Prepares a workload and runs it once."""
        self._ready = None
        case = Case(Path(folder), entry)
        self._ready = self._system.prepare(case)
        results = self._ready.outputs()
        judged = asdict(case.judge(results)) if results is not None else {"error": None}
        return {**judged, "resources": getattr(self._ready, "resources", {})}

    def _time(self, seconds: float) -> Answer:
        return {"timing": asdict(self._ready.time(seconds=seconds))}

    def _forget(self) -> Answer:
        self._ready = None
        return {}


if __name__ == "__main__":
    main()
