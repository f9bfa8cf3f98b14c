"""Programs read PyTorch's tensors where they lie, and change none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tilewright
from torch_cases import assert_close, module_of

torch = pytest.importorskip("torch")

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sort": lambda x, i, v: tuple(torch.sort(x, 0, descending=True)),
    "index_add": lambda x, i, v: x.index_add(0, i, v),
    "index_put": lambda x, i, v: x.index_put((i,), v) * 2,
    "index_put of a view": lambda x, i, v: x.reshape(-1, 2, 4).index_put((i,), v.reshape(-1, 2, 4)),
    "slice_scatter": lambda x, i, v: torch.slice_scatter(x, v, 0, 1, 1 + v.shape[0]),
}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_inputs_keep_their_elements(name: str, is_open: bool) -> None:  # noqa: FBT001
    def inputs(rows: int, count: int) -> tuple[Any, ...]:
        return torch.randn(rows, 8), torch.randperm(rows)[:count], torch.randn(count, 8)

    torch.manual_seed(0)
    module = module_of(_FUNCTIONS[name])
    opened = ({0: torch.export.Dim.DYNAMIC if is_open else None},) * 3
    exported = torch.export.export(module, inputs(7, 4), dynamic_shapes=(opened,))
    program = tilewright.compile(exported, threads=1)
    for sizes in ((11, 6), (5, 3)) if is_open else ((7, 4),):
        given = inputs(*sizes)
        before = [each.clone() for each in given]
        result = program(*given)
        assert all(map(torch.equal, given, before))
        assert_close(result, module, given)
