"""PyTorch on the GPU, op by op and compiled, on the models as its users would write them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import torch
from tilewright.runtime.cold import LEAST_SECONDS, ColdCache
from tilewright.runtime.cuda import Cuda

from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.timing import Timing, host_seconds, median_of
from benchmarks.peers import Array
from benchmarks.peers.onnx_recurrent import stack_of
from benchmarks.peers.onnx_to_torch import to_module, to_tensor

_SHARE_OF_CALLS = 0.3


class TorchEager:
    """PyTorch, op by op."""

    def __init__(self) -> None:
        if not torch.cuda.is_available():
            raise ImportError("this PyTorch has no CUDA")

    def versions(self) -> dict[str, Any]:
        """Returns the versions of the package and of its CUDA."""
        return {"torch": torch.__version__, "torch-cuda": torch.version.cuda}

    def prepare(self, case: Case) -> TorchProgram:
        """Moves weights and inputs to the GPU. cuDNN chooses the fastest of its convolutions, with channels innermost,
        and runs recurrent layers."""
        module = (stack_of(case.model) or to_module(case.model, barrier=lambda x: x)).cuda()
        inputs = inputs_of(case)
        if any(node.op_type == "Conv" for node in case.model.graph.node):
            torch.backends.cudnn.benchmark = True
            for weight in module.buffers():
                weight.data = _channels_last(weight)
            inputs = [_channels_last(x) for x in inputs]
        return TorchProgram(self._compiled(module), inputs)

    def _compiled(self, module: Callable[..., Any]) -> Callable[..., Any]:
        return module


class TorchCompile(TorchEager):
    """PyTorch with torch.compile at its default settings."""

    _mode = "default"

    def _compiled(self, module: Callable[..., Any]) -> Callable[..., Any]:
        torch._dynamo.reset()
        compiled: Callable[..., Any] = torch.compile(module, dynamic=False, fullgraph=True, mode=self._mode)
        return compiled


class TorchMaxAutotune(TorchCompile):
    """PyTorch with the kernels that were fastest on this GPU, launched as one CUDA graph."""

    _mode = "max-autotune"


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def inputs_of(case: Case) -> list[torch.Tensor]:
    """Returns the inputs of a workload on the GPU."""
    return [to_tensor(array).cuda() for array in case.inputs]


class TorchProgram:
    """A module with its inputs on the GPU."""

    def __init__(self, module: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> None:
        self._module, self._inputs = module, inputs
        self._results: tuple[torch.Tensor, ...] = ()
        self._call()

    def outputs(self) -> list[Array]:
        """Returns the outputs of one call."""
        self._call()
        return [_array(result.cpu()) for result in self._results]

    def time(self, *, seconds: float) -> Timing:
        """Returns times with a cold cache before every call."""
        cache = ColdCache(Cuda())
        turns = 1 + math.ceil(self._launching_seconds() / LEAST_SECONDS)

        def flush() -> None:
            for _ in range(turns):
                cache()

        begin: Any = torch.cuda.Event(enable_timing=True)
        end: Any = torch.cuda.Event(enable_timing=True)

        def sample() -> float:
            flush()
            begin.record()
            self._call()
            end.record()
            torch.cuda.synchronize()
            return float(begin.elapsed_time(end)) * 1e-3

        kernel, samples = median_of(sample, seconds=seconds * (1 - _SHARE_OF_CALLS))
        calls = host_seconds(self._call, torch.cuda.synchronize, flush)
        call, _ = median_of(calls, seconds=seconds * _SHARE_OF_CALLS)
        return Timing(kernel_s=kernel, call_s=call, samples=samples)

    def _launching_seconds(self) -> float:
        """Returns the host's seconds for launching op by op, during which the GPU is kept busy with other work."""
        started = time.perf_counter()
        self._call()
        launched = time.perf_counter()
        torch.cuda.synchronize()
        return launched - started

    @torch.inference_mode()
    def _call(self) -> None:
        self._results = self._module(*self._inputs)


def _array(tensor: torch.Tensor) -> Array:
    if tensor.dtype == torch.bfloat16:
        bits: Array = tensor.contiguous().view(torch.uint16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    array: Array = tensor.numpy()
    return array
