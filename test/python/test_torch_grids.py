"""`grid_sample` of volumes: PyTorch's results, also for points outside."""

from __future__ import annotations

import pytest
import tilewright
from torch_cases import assert_close, module_of

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_samples_of_volumes_are_those_of_pytorch(mode: str, padding: str, *, align_corners: bool) -> None:
    x, grid = torch.randn(2, 3, 4, 5, 6), torch.randn(2, 3, 4, 2, 3) * 1.7
    if padding == "zeros":
        grid[0, 0, 0, 0], grid[1, 2, 1, 1] = float("inf"), float("nan")
    module = module_of(
        lambda x, grid: torch.nn.functional.grid_sample(x, grid, mode, padding, align_corners=align_corners)
    )
    program = tilewright.compile(module, target="cpu", threads=1, example_inputs=(x, grid), deploy=False)
    assert_close(program(x, grid), module, (x, grid))
