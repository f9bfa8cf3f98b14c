"""Convolutions and pools of PyTorch with one window along a dim of an open batch: PyTorch's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright
from torch_cases import module_of

torch = pytest.importorskip("torch")
_pools = torch.nn.functional

_GENERATOR = torch.Generator().manual_seed(3)
_LINES, _IMAGES = (torch.randn(shape, generator=_GENERATOR) for shape in ((3, 2, 3), (3, 2, 3, 3)))

_FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "max_pool1d": ((2, 4), lambda x: _pools.max_pool1d(x, 3, 3)),
    "max_pool2d with indices": (
        (2, 3, 7),
        lambda x: _pools.max_pool2d(x, (3, 2), (3, 2), (1, 0), return_indices=True),
    ),
    "avg_pool2d": ((2, 5, 4), lambda x: _pools.avg_pool2d(x, 3, 3)),
    "avg_pool2d that counts no padding": (
        (2, 9, 3),
        lambda x: _pools.avg_pool2d(x, 3, (2, 4), 1, count_include_pad=False),
    ),
    "conv1d": ((2, 5), lambda x: _pools.conv1d(x, _LINES, stride=3)),
    "conv2d": ((2, 4, 9), lambda x: _pools.conv2d(x, _IMAGES, stride=4, padding=1)),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_the_only_window_of_an_open_batch_stays_where_it_is(name: str) -> None:
    sample, function = _FUNCTIONS[name]
    batch = torch.export.Dim("batch", min=2, max=16)
    x = torch.randn(5, *sample, generator=torch.Generator().manual_seed(1))
    exported = torch.export.export(module_of(function), (x,), dynamic_shapes=(({0: batch},),))
    results, expected = tilewright.compile(exported, threads=1)(x.numpy()), function(x)
    if torch.is_tensor(expected):
        results, expected = (results,), (expected,)
    for result, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, want.numpy(), rtol=2e-6, atol=2e-6)
