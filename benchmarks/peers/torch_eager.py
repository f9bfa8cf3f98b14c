"""PyTorch, executed op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import torch

from benchmarks.peers import Array, Facts, Settings
from benchmarks.peers.onnx_to_torch import to_module, to_tensor


class TorchEager:
    def __init__(self, settings: Settings) -> None:
        torch.set_num_threads(settings.threads)

    def versions(self) -> dict[str, str]:
        return {"torch": torch.__version__}

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> TorchProgram:
        return TorchProgram(to_module(onnx.load(model), barrier=lambda x: x), inputs)


class TorchProgram:
    """A module with its inputs as tensors."""

    def __init__(
        self, module: Callable[..., Any], inputs: Sequence[Array], facts: Facts | None = None
    ) -> None:
        self.facts = facts or Facts()
        self._module = module
        self._inputs = [to_tensor(array) for array in inputs]
        self._results: tuple[torch.Tensor, ...] = ()

    @torch.inference_mode()
    def call(self) -> None:
        self._results = self._module(*self._inputs)

    def outputs(self) -> list[Array]:
        return [_array(result) for result in self._results]


def _array(tensor: torch.Tensor) -> Array:
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return np.array(tensor.numpy())
