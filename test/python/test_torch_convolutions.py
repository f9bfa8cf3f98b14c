"""Convolutions by single channels that IREE's importer lacks: PyTorch's results."""

from __future__ import annotations

from typing import Any

import pytest
import tilewright
from torch_cases import assert_close

torch = pytest.importorskip("torch")
_nn = torch.nn

_MODULES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "volumes": (
        _nn.Conv3d(6, 6, (2, 3, 4), stride=(2, 1, 2), padding=(1, 0, 2), dilation=(2, 1, 1), groups=6),
        (2, 6, 5, 7, 8),
    ),
    "transposed lines": (
        _nn.ConvTranspose1d(6, 6, 4, stride=3, padding=1, output_padding=2, dilation=2, groups=6),
        (2, 6, 5),
    ),
    "transposed images whose padding cuts": (
        _nn.ConvTranspose2d(6, 6, 2, stride=(1, 3), padding=2, groups=6, bias=False),
        (2, 6, 5, 7),
    ),
    "transposed volumes": (
        _nn.ConvTranspose3d(6, 6, (2, 3, 3), stride=(2, 1, 2), padding=1, groups=6),
        (1, 6, 4, 5, 3),
    ),
}


@pytest.mark.parametrize("name", _MODULES)
def test_a_convolution_by_single_channels(name: str) -> None:
    module, shape = _MODULES[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    program = tilewright.compile(module, example_inputs=(x,), threads=1)
    with torch.no_grad():
        assert_close(program(x), module, (x,))
