"""Attention by one call of PyTorch's `scaled_dot_product_attention`, with all of its arguments.

The models in `through_torch` also call it, but as they are written: without a fourth dimension, which its fused kernels
require, and with the heads of keys and values copied for each group. Only workloads that are one attention run here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from benchmarks.gpu_check.attention import Attention, recognize
from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.through_torch import TorchEager, TorchProgram, inputs_of


class TorchSdpa(TorchEager):
    """System that runs PyTorch's attention, with whichever kernel PyTorch selects."""

    def prepare(self, case: Case) -> TorchProgram:
        """Moves the inputs to the GPU."""
        return TorchProgram(_to_function(recognize(case.model)), inputs_of(case))


def _to_function(attention: Attention) -> Callable[..., tuple[torch.Tensor]]:
    def call(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor]:
        # A batch of matrices becomes the heads of one sequence.
        q, k, v = (x if x.ndim == 4 else x[None] for x in (query, key, value))
        result = F.scaled_dot_product_attention(
            q, k, v, is_causal=attention.is_causal, scale=attention.scale, enable_gqa=attention.is_grouped
        )
        return (result.reshape(*query.shape[:-1], value.shape[-1]),)

    return call
