"""Dynamic shapes in the back end of torch.compile."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from torch_cases import assert_close, compare

torch = pytest.importorskip("torch")


backend = pytest.importorskip("tilewright.torch.backend")


nn = torch.nn


pytestmark = pytest.mark.usefixtures("fresh_torch_backend")


def test_every_dynamic_shape_is_compiled_once() -> None:
    def function(x: Any) -> Any:
        return torch.softmax(x @ x.transpose(-1, -2), -1) * x.shape[0]

    run = torch.compile(function, backend=backend.tilewright, dynamic=True, options={"threads": 1})
    with torch.no_grad():
        for rows in (33, 35, 33, 35):
            x = torch.randn(rows, 41)
            assert_close(run(x), function, (x,))
    assert [report.runs_in for report in backend.reports] == ["tilewright", "tilewright"]


def test_shapes_beyond_the_limit_run_in_eager_mode() -> None:
    def function(x: Any) -> Any:
        return torch.softmax(x * 2, -1)

    run = torch.compile(function, backend=backend.tilewright, dynamic=True, options={"most_shapes": 1})
    with torch.no_grad():
        for rows in (33, 35):
            x = torch.randn(rows, 41)
            assert_close(run(x), function, (x,))
    assert [report.runs_in for report in backend.reports] == ["tilewright", "eager"]


def test_gradients_of_dynamic_shapes() -> None:
    module = nn.Sequential(nn.Linear(17, 33), nn.GELU(), nn.Linear(33, 9))
    reference = copy.deepcopy(module).double()
    run = torch.compile(module, backend=backend.tilewright, dynamic=True, options={"threads": 1})
    for rows in (40, 41):
        x = torch.randn(rows, 17)
        run(x).square().sum().backward()
        reference(x.double()).square().sum().backward()
    for got, want in zip(module.parameters(), reference.parameters(), strict=True):
        compare(got.grad, want.grad)
