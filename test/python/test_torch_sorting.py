"""Sorts, scatters and searches of PyTorch: in our kernels, and with PyTorch's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright
from torch_cases import module_of

torch = pytest.importorskip("torch")

_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "topk": lambda x, p: torch.topk(x, 5),
    "topk, smallest": lambda x, p: torch.topk(x, 5, dim=0, largest=False),
    "topk in any order": lambda x, p: torch.topk(x, 5, sorted=False)[0].sort()[0],
    "sort": lambda x, p: torch.sort(x, descending=True, stable=True),
    "argsort": lambda x, p: torch.argsort(x, dim=0),
    "kthvalue": lambda x, p: torch.kthvalue(x, 3, keepdim=True),
    "median": lambda x, p: torch.median(x, dim=0),
    "median of all": lambda x, p: torch.median(x),
    "searchsorted": lambda x, p: torch.searchsorted(torch.sort(x)[0], x, right=True),
    "scatter": lambda x, p: x.scatter(1, p, x[:, :3] * 2),
    "scatter of columns, viewed": lambda x, p: torch.zeros(19, 9)[:, :7].scatter(0, p.T, x[:3, :7]).view(-1),
    "scatter of a value": lambda x, p: x.scatter(1, p, 1.5),
    "scatter of some lines": lambda x, p: x.scatter(1, p[:4], x[:, :3] * 2),
    "scatter_add": lambda x, p: x.scatter_add(1, p, x[:, :3]),
    "scatter_reduce, sum": lambda x, p: x.scatter_reduce(1, p, x[:, :3], "sum"),
    "scatter_reduce, amax": lambda x, p: x.scatter_reduce(1, p, x[:, :3], "amax", include_self=False),
    "scatter_reduce, amin": lambda x, p: x.scatter_reduce(1, p, x[:, :3], "amin"),
    "scatter_reduce, prod": lambda x, p: x.scatter_reduce(-1, p[:4], x[:, :3], "prod"),
    "scatter_reduce, mean": lambda x, p: x.scatter_reduce(1, p, x[:, :3], "mean"),
    "scatter_reduce, mean of whole numbers": lambda x, p: (
        (x * 9).long().scatter_reduce(1, p // 2, p - 9, "mean", include_self=False)
    ),
    "index_reduce, prod": lambda x, p: x.index_reduce(1, p[0] // 2, x[:, :3], "prod"),
    "routing": lambda x, p: torch.zeros_like(x).scatter(1, torch.topk(x, 2)[1], torch.topk(x, 2)[0]),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_sorts_and_scatters_are_those_of_pytorch(name: str) -> None:
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(7, 19, generator=generator)
    places = torch.argsort(torch.rand(7, 19, generator=generator), dim=1)[:, :3]  # no place twice in a line
    module = module_of(_FUNCTIONS[name])
    program = tilewright.compile(torch.export.export(module, (x, places)), threads=1)
    assert program.runtime == "direct"
    results, expected = program(x.numpy(), places.numpy()), module(x, places)
    if not isinstance(expected, tuple):
        results, expected = (results,), (expected,)
    for result, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, want.numpy(), rtol=1e-6)


def test_a_median_of_nan_is_nan() -> None:
    x = torch.tensor([[3.0, float("nan"), 1.0], [3.0, 2.0, 1.0]])
    module = module_of(lambda x, _: torch.median(x, dim=1)[0])
    program = tilewright.compile(torch.export.export(module, (x, x)), threads=1)
    np.testing.assert_array_equal(program(x.numpy(), x.numpy()), [np.nan, 2.0])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
def test_bools_and_bytes_are_sorted(dtype: Any, *, descending: bool) -> None:
    """Bytes from 128 on are no negative numbers, and equal elements keep their order."""
    x = torch.randint(0, 2 if dtype == torch.bool else 256, (3, 19)).to(dtype)
    module = module_of(lambda x, _: torch.sort(x, descending=descending, stable=True))
    program = tilewright.compile(torch.export.export(module, (x, x)), threads=1)
    for result, want in zip(program(x.numpy(), x.numpy()), module(x, x), strict=True):
        np.testing.assert_array_equal(result, want.numpy())


def test_the_greatest_bytes_are_found() -> None:
    x = torch.randperm(256)[:19].to(torch.uint8)
    module = module_of(lambda x, _: torch.topk(x, 4)[0])
    program = tilewright.compile(torch.export.export(module, (x, x)), threads=1)
    np.testing.assert_array_equal(program(x.numpy(), x.numpy()), module(x, x).numpy())


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_put_inside_only(axis: int) -> None:
    """An index outside is moved to the nearest row, so that no other memory is written."""
    x = torch.randn(4, 5)
    module = module_of(lambda x, i: x.index_copy(axis, i, torch.ones_like(x).narrow(axis, 0, 1)))
    program = tilewright.compile(torch.export.export(module, (x, torch.tensor([1]))), threads=1)
    expected = x.clone().index_fill(axis, torch.tensor([x.shape[axis] - 1]), 1.0)
    np.testing.assert_array_equal(program(x.numpy(), np.array([77])), expected.numpy())
