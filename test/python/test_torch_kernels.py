"""Graphs of PyTorch whose kernels were once refused, or wrong: PyTorch's results, in kernels of ours."""

from __future__ import annotations

from typing import Any

import pytest
import tilewright
from torch_cases import assert_close, module_of

torch = pytest.importorskip("torch")
nn = torch.nn


def _assert_right(module: Any, x: Any) -> None:
    """Checks a program without its fallback, in which every op has a kernel of its own."""
    with torch.no_grad():
        program = tilewright.compile(module.eval(), "cpu", example_inputs=(x,), threads=1, strict=True)
        assert_close(program(x), module, (x,))


def test_a_pool_that_two_products_read_is_stored_block_by_block() -> None:
    """One of them walks the channels of the pool in blocks, and the other one reads them in another kernel."""

    class Pool(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.pool = nn.MaxPool3d(2, 2)
            self.few = nn.Conv3d(832, 128, 1, bias=False)
            self.many = nn.Conv3d(832, 256, 1, bias=False)

        def forward(self, x: Any) -> Any:
            pooled = self.pool(x)
            return self.many(pooled), self.few(pooled)

    _assert_right(Pool(), torch.randn(1, 832, 4, 14, 14))


def test_values_computed_at_load_may_have_several_readers() -> None:
    class Gated(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Parameter(torch.rand(4))
            self.to_heads = nn.Linear(3, 4)
            self.register_buffer("places", torch.randn(1, 16, 16, 3))

        def forward(self, x: Any) -> Any:
            gate = self.gate.view(1, -1, 1, 1).sigmoid()
            places = self.to_heads(self.places).permute(0, 3, 1, 2).softmax(-1)
            return (1 - gate) * x.softmax(-1) + gate * places

    _assert_right(Gated(), torch.randn(1, 4, 16, 16))


def test_windows_are_put_back_and_split_into_a_grid() -> None:
    """The index into the windows has quotients of sums, whose range no rule finds."""

    def regroup(x: Any) -> Any:
        image = x.view(8, 8, 7, 7, 5).permute(0, 2, 1, 3, 4).reshape(56, 56, 5)
        grid = image.view(7, 8, 7, 8, 5).permute(1, 3, 0, 2, 4).reshape(64, 49, 5)
        return grid / grid.sum(-1, keepdim=True)

    _assert_right(module_of(regroup), torch.rand(64, 49, 5) + 0.5)
