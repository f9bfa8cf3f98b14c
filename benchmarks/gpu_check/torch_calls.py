"""The ways in which users of PyTorch call a program: on the current stream, on others, and in its CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import torch
from tilewright.runtime.program import Program

from benchmarks.peers import Array
from benchmarks.peers.onnx_to_torch import to_tensor

Results = tuple[str, list[Array]]


def on_gpu(inputs: Sequence[Array]) -> list[torch.Tensor]:
    """Returns copies of arrays on the GPU."""
    return [to_tensor(array).cuda() for array in inputs]


def called(program: Program, inputs: Sequence[torch.Tensor]) -> Iterator[Results]:
    """Yields results on the current stream, and on another one that the inputs come from."""
    yield "with tensors of PyTorch", _arrays(program(*inputs))
    make_stream: Any = torch.cuda.Stream  # which is not typed
    side = make_stream()
    with torch.cuda.stream(side):
        copies = [value.clone() for value in inputs]
        results = program(*copies)
    side.synchronize()
    yield "on another stream", _arrays(results)


def captured(program: Program, inputs: Sequence[torch.Tensor]) -> Iterator[Results]:
    """Yields results of a CUDA graph of PyTorch's that contains the call, replayed on other inputs in between."""
    places = [value.clone() for value in inputs]
    program(*places)  # outside of a capture first, as PyTorch asks for
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = program(*places)
    for values in ([torch.ones_like(value) for value in inputs], inputs):
        for place, value in zip(places, values, strict=True):
            place.copy_(value)
        graph.replay()
        torch.cuda.synchronize()
    yield "in a graph of PyTorch's", _arrays(results)


def _arrays(tensors: Sequence[torch.Tensor]) -> list[Array]:
    return [
        tensor.cpu().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
        if tensor.dtype == torch.bfloat16
        else tensor.cpu().numpy()
        for tensor in tensors
    ]
