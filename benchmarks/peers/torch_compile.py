"""PyTorch with torch.compile (Inductor) and frozen weights, as its documentation recommends for inference on CPUs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import onnx
import torch
import torch._inductor.config

from benchmarks.peers import Array, Facts, Settings
from benchmarks.peers.onnx_to_torch import to_module
from benchmarks.peers.torch_eager import TorchProgram

_CALLS = 2000

# Barrier between repetitions: an op that may write its argument and is opaque to Inductor, so that nothing moves across
# it.
_library = torch.library.Library("tilewright_benchmarks", "DEF")
_library.define("barrier(Tensor(a!) x) -> ()")
_library.impl("barrier", lambda x: None, "CPU")
torch.library.register_fake("tilewright_benchmarks::barrier", lambda x: None, lib=_library)


class TorchCompile:
    def __init__(self, settings: Settings) -> None:
        torch.set_num_threads(settings.threads)
        # Workloads compile one at a time; a pool of compiling processes costs more than it saves.
        torch._inductor.config.compile_threads = 1
        torch._inductor.config.freezing = True
        self._barrier_seconds = _seconds_of_barrier()

    def versions(self) -> dict[str, str]:
        return {"torch": torch.__version__}

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> TorchProgram:
        if repetitions == 1:
            torch._dynamo.reset()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
        module = to_module(onnx.load(model), barrier=_barrier)
        compiled = torch.compile(module, dynamic=False, fullgraph=True)
        program = TorchProgram(compiled, inputs)
        program.facts = Facts(detail="freezing", barrier_seconds=self._barrier_seconds)
        return program


def _barrier(x: torch.Tensor) -> torch.Tensor:
    torch.ops.tilewright_benchmarks.barrier(x)
    return x


def _seconds_of_barrier() -> float:
    """Returns the seconds of one barrier when called from Python, as in Inductor's code."""
    x = torch.zeros(1)
    barrier = torch.ops.tilewright_benchmarks.barrier.default
    barrier(x)
    started = time.perf_counter()
    for _ in range(_CALLS):
        barrier(x)
    return (time.perf_counter() - started) / _CALLS
