"""Ops of PyTorch that IREE's importer lacks, or takes in some forms only: PyTorch's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright
from torch_cases import module_of

torch = pytest.importorskip("torch")


def _put(x: Any, *places: Any, accumulate: bool = False) -> Any:
    """Puts numbers at places of a copy; None stands for a whole dim."""
    whole = slice(None)
    at = tuple(whole if place is None else torch.tensor(place) for place in places)
    values = torch.arange(x[at].numel(), dtype=x.dtype).reshape(x[at].shape)
    indices = [None if place is None else torch.tensor(place) for place in places]
    return torch.ops.aten.index_put(x, indices, values, accumulate)


def _changed(x: Any, mask: Any) -> Any:
    """Returns a copy whose elements or rows at the places of a mask were computed by themselves."""
    y = x.clone()
    y[mask] = y[mask] * 3 + 1
    return y


def _whole(x: Any) -> Any:
    return (x * 2).to(torch.int32)


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "roll": lambda x: torch.roll(x, (1, -2), (2, 3)) * 2,
    "roll of dims apart": lambda x: torch.roll(x, (1, 2, -1), (1, 3, 1)),
    "roll by more than the size": lambda x: torch.roll(x, (7, -9), (1, 2)),
    "roll of all elements": lambda x: torch.roll(x, 5),
    "eye": lambda x: torch.eye(7) @ x[0, 0].T + torch.eye(7, 6),
    "put": lambda x: x.put(torch.tensor([[3, -1]]), torch.tensor([[7.0, 8.0]])),
    "fold": lambda x: torch.nn.functional.fold(
        torch.nn.functional.unfold(x, 3, padding=1, stride=2), (6, 7), 3, padding=1, stride=2
    ),
    "bilinear": lambda x: torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear, corners": lambda x: torch.nn.functional.interpolate(
        x, size=(5, 11), mode="bilinear", align_corners=True
    ),
    "bilinear, antialiased": lambda x: torch.nn.functional.interpolate(
        x, size=(3, 11), mode="bilinear", antialias=True
    ),
    "bicubic, antialiased, corners": lambda x: torch.nn.functional.interpolate(
        x, size=(9, 3), mode="bicubic", antialias=True, align_corners=True
    ),
    "cdist": lambda x: torch.cdist(x[0, 0], x[1, 1]),
    "cdist, sums": lambda x: torch.cdist(x[0, 0], x[1, 1], p=1.0),
    "fmod": lambda x: torch.fmod(x, 0.7),
    "fmod of tensors": lambda x: torch.fmod(x, x[:1, :1] + 4),
    "fmod of integers": lambda x: torch.fmod((x * 10).to(torch.int32), 7),
    "hypot": lambda x: torch.hypot(x * 1e30, x.flip(3) * 1e30),
    "hypot of special numbers": lambda x: torch.hypot(
        torch.tensor([float("inf"), float("nan"), 0.0, -3.0, float("-inf")]),
        torch.tensor([float("nan"), 1.0, 0.0, 4.0, float("inf")]) + 0 * x[0, 0, 0, 0],
    ),
    "cummax of equal elements and NaN": lambda x: torch.cummax(x.round().masked_fill(x > 2, float("nan")), 3),
    "cummin along a dim in the middle": lambda x: torch.cummin(x.round(), 2),
    "logcumsumexp of large and infinite numbers": lambda x: torch.logcumsumexp(
        (x * 300).masked_fill(x > 1.5, float("inf")).masked_fill(x < -1, float("-inf")), -1
    ),
    "cumprod of a number": lambda x: torch.cumprod(x[0, 0, 0, 0], 0),
    "cumprod as f64": lambda x: torch.cumprod(x, 3, dtype=torch.float64),
    "max_pool2d of one image": lambda x: torch.nn.functional.max_pool2d(x[0], 3, 2, 1, return_indices=True),
    "max_pool3d of one image": lambda x: torch.nn.functional.max_pool3d(x, 2, 2, 1),
    "avg_pool2d of one image": lambda x: torch.nn.functional.avg_pool2d(x[0], 3, 2, 1),
    "adaptive_max_pool2d of one image": lambda x: torch.nn.functional.adaptive_max_pool2d(x[0], (3, 2)),
    "conv_transpose2d of a padded image": lambda x: torch.nn.functional.conv_transpose2d(
        torch.nn.functional.pad(x, (4, 1, 0, 2)), x[0, :, :2, :3].unsqueeze(1), stride=(2, 3)
    ),
    "histc": lambda x: torch.histc(x, 7, -1, 2),
    "histc of the whole range": lambda x: torch.histc(x, 5),
    "lgamma": lambda x: torch.lgamma(x * torch.tensor([0.2, 1, 4, 9, 30, 1e-3, 1e-30])),
    "lgamma of special numbers": lambda x: torch.lgamma(
        torch.tensor([0.0, -2.0, float("inf"), float("-inf"), float("nan"), 1.0, 2.0]) + 0 * x
    ),
    "scatter_reduce of a number": lambda x: x[0, 0, 0, 0].scatter_reduce(
        0, torch.tensor(0), x[0, 0, 0, 1], "mean"
    ),
    "index_fill": lambda x: x.index_fill(3, torch.tensor([1, 3]), 2.0),
    "index_copy": lambda x: x.index_copy(2, torch.tensor([4, 1]), x[:, :, :2]),
    "attention whose heads become one dim, by a view": lambda x: (
        torch.nn.functional.scaled_dot_product_attention(x, x, x)
        .transpose(1, 2)
        .reshape(2, 6, 21)
        .view(12, 21)
    ),
    "pad that removes at the other end": lambda x: torch.nn.functional.pad(
        x, (1, -2, -1, 3, 0, -1), value=2.0
    ),
    "empty tensor, filled by a permutation": lambda x: torch.empty_like(
        x[0, 0, 0], dtype=torch.int64
    ).index_put((x[0, 0, 0].argsort(),), torch.arange(7)),
    "mask that selects nothing": lambda x: torch.ops.aten.index_put(x, (x > 99,), torch.tensor(2.0)),
    "mask of rows": lambda x: torch.ops.aten.index_put(x, (None, x[0, :, :, 0] > 0), x[0, 0, :1]),
    "mask of rows, added": lambda x: torch.ops.aten.index_put(x, (x[..., 0] > 0,), torch.arange(7.0), True),
    "places behind a dim": lambda x: _put(x, None, [0, 2], [1, -1]),
    "places in the last dim, added": lambda x: _put(x, None, None, None, [0, 2, 2], accumulate=True),
    "places around a dim": lambda x: _put(x, [0, 1], None, [1, 2]),
    "product with a vector, added": lambda x: torch.addmv(
        x[0, 0, :, 0], x[0, 1], x[1, 2, 3], beta=0.5, alpha=2
    ),
    "dist": lambda x: torch.dist(x[0], x[1, :1], 3),
    "pdist": lambda x: torch.pdist(x[0, 0]),
    "narrow_copy": lambda x: torch.narrow_copy(x, 3, 2, 4),
    "diagonal above the first one": lambda x: torch.diagonal_scatter(x, x[..., 0] + 9, 1, 2, 3),
    "diagonal of a tall matrix": lambda x: torch.diagonal_scatter(x, x[0, ..., :2] + 9, -2, 3, 0),
    "fmax with a row": lambda x: torch.fmax(x.masked_fill(x > 1, float("nan")), x[0, 0, 0]),
    "fmin of integers and a row": lambda x: torch.fmin((x * 9).to(torch.int32), x[0, 0, 0].to(torch.int32)),
    "digamma": lambda x: torch.digamma(x * torch.tensor([0.2, 1, 4, 9, 30, 1e-3, 1e-30])),
    "digamma of special numbers": lambda x: torch.digamma(
        torch.tensor([0.0, -0.0, -2.0, float("inf"), float("nan"), 1.0, 2.0]) + 0 * x.abs()
    ),
    "nanmedian": lambda x: torch.nanmedian(x.masked_fill(x > 0.3, float("nan")), 2)[0],
    "nanmedian of all": lambda x: torch.nanmedian(x.masked_fill(x > 0.3, float("nan"))),
    "searchsorted of a number": lambda x: torch.searchsorted(x[0, 0, 0].sort()[0], 0.1),
    "searchsorted of a fraction among whole numbers": lambda x: torch.searchsorted(
        (x[0, 0, 0] * 9).to(torch.int32).sort()[0], 2.5
    ),
    "searchsorted by a sorter": lambda x: torch.searchsorted(x, x.flip(3), sorter=x.argsort(-1)),
    "masked_scatter of a row": lambda x: torch.masked_scatter(x[0, 0, 0], x > 0, x.flip(0)),
    "scatter of a factor": lambda x: torch.scatter(x, 3, (x[..., :2] > 0).long(), 3.0, reduce="multiply"),
    "max of a number": lambda x: torch.max(x[0, 0, 0, 0], 0)[0],
    "kthvalue of a number": lambda x: torch.kthvalue(x[0, 0, 0, 0], 1)[0],
    "softmax of a number": lambda x: torch.softmax(x[0, 0, 0, 0], 0) + torch.log_softmax(x[0, 0, 0, 1], 0),
    "gather from a number": lambda x: torch.gather(x[0, 0, 0, 0], 0, torch.tensor(0)) + x,
    "logsumexp and product of a number": lambda x: x[0, 0, 0, 0].logsumexp(0) * x[0, 0, 0, 1].prod(0),
    "logsumexp of two dims": lambda x: torch.logsumexp(x * 90, (1, -1)),
    "logsumexp of whole numbers": lambda x: (_whole(x).logsumexp((1, 3)), _whole(x)[0, 0, 0, 0].logsumexp(0)),
    "products of a whole number": lambda x: (_whole(x)[0, 0, 0, 0].prod(0), _whole(x)[0, 0, 0, 1].cumprod(0)),
    "cumprod in a narrower type": lambda x: torch.cumprod(_whole(x).long(), 3, dtype=torch.uint8),
    "diagonal of fractions among whole numbers": lambda x: torch.diagonal_scatter(
        _whole(x), x[..., 0] + 9, 1, 2, 3
    ),
    "spread of the rows of a mask": lambda x: x[x[..., 0, 0] > -9].std(0),
    "copies of views": lambda x: torch.permute_copy(torch.view_copy(x, (6, 42)), (1, 0)),
    "elements of a mask": lambda x: x[x > 0.5] * 2,
    "rows of a mask, of which there are none": lambda x: x[:, :, x[0, 0, :, 0] > 99],
    "elements of a mask, changed": lambda x: _changed(x, x > 0.5),
    "rows of a mask, changed": lambda x: _changed(x, x[..., 0, 0] > 0),
    "elements of a mask, of which there are none, changed": lambda x: _changed(x, x > 99),
    "masked_select by a row": lambda x: torch.masked_select(x, x[0, 0, 0] > 0),
    "places of a number": lambda x: (torch.nonzero(x[0, 0, 0, 0]), x * 2),
    "put at no places": lambda x: x.put(torch.zeros(0, dtype=torch.int64), torch.zeros(0)) * 2,
    "avg_pool2d with one padding": lambda x: torch.nn.functional.avg_pool2d(
        x, 3, 2, (1,), divisor_override=-2
    ),
    "polar with a row": lambda x: torch.view_as_real(torch.polar(x.abs(), x[0, 0, 0])),
    "unique": lambda x: torch.unique(x.round(), return_inverse=True, return_counts=True),
    "unique numbers and NaN": lambda x: torch.unique(
        x.round().masked_fill(x > 2, float("nan")), sorted=False
    ),
    "unique in a row": lambda x: torch.unique_consecutive(x[0].round(), return_counts=True),
    "windows of no images": lambda x: torch.nn.functional.unfold(x[:0], 3).sum() + x,
    "spread of nothing": lambda x: (*torch.std_mean(x[:0], 0), torch.var(x[:0], 0)),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_results_are_those_of_pytorch(name: str) -> None:
    x = torch.randn(2, 3, 6, 7, generator=torch.Generator().manual_seed(5))
    module = module_of(_FUNCTIONS[name])
    program = tilewright.compile(torch.export.export(module, (x,)), threads=1)
    results, expected = program(x.numpy()), module(x)
    if isinstance(expected, torch.Tensor):
        results, expected = (results,), (expected,)
    for result, want in zip(results, expected, strict=True):
        assert result.dtype == want.numpy().dtype
        np.testing.assert_allclose(result, want.numpy(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.randint(2, 9, (200, 5), dtype=torch.float32) + 0 * x,
        lambda x: torch.randint_like(x, 2, 9),
        lambda x: torch.normal(x * 0 + 5, 1.9).round().clamp(2, 8),
    ],
)
def test_random_whole_numbers_have_the_mean_and_spread_asked_for(function: Callable[[Any], Any]) -> None:
    x = torch.randn(200, 5)
    program = tilewright.compile(torch.export.export(module_of(function), (x,)), threads=1)
    result = program(x.numpy())
    assert result.dtype == np.float32
    assert set(np.unique(result)) == set(range(2, 9))
    assert abs(result.mean() - 5) < 0.4  # six deviations of the mean of 1000 numbers
    assert 1.6 < result.std() < 2.3
