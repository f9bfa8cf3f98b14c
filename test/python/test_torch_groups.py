"""Products of groups of rows, as layers of experts compute them: the numbers of rows are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import tilewright
from torch_cases import assert_close, module_of

torch = pytest.importorskip("torch")


def _one_by_one(x: Any, weights: Any, ends: Any) -> Any:
    starts = [0, *ends.tolist()[:-1]]
    parts = [x[start:end] @ w for start, end, w in zip(starts, ends.tolist(), weights, strict=True)]
    return torch.cat([*parts, x.new_zeros(len(x) - int(ends[-1]), weights.shape[2])])


@pytest.fixture
def library_op() -> Any:
    """The op of the transformers library, for types that PyTorch's own does not take."""
    name = "transformers::grouped_mm_fallback"
    schema = "(Tensor input, Tensor weight, Tensor offs) -> Tensor"
    op = torch.library.custom_op(name, _one_by_one, mutates_args=(), schema=schema)
    op.register_fake(lambda x, weights, ends: x.new_empty(x.shape[0], weights.shape[2]))
    return op


@pytest.mark.parametrize("rows", [3, 13])
def test_a_group_is_multiplied_with_its_matrix(library_op: Any, rows: int) -> None:
    """With empty groups, groups of all rows, and rows behind the last group."""
    x, weights = torch.randn(rows, 8), torch.randn(4, 8, 12)
    found: list[Sequence[int]] = [(0, 2, 2, rows), (rows, rows, rows, rows), (0, 0, 1, rows - 1)]
    ends = torch.tensor(found[0], dtype=torch.int32)
    program = tilewright.compile(module_of(library_op), example_inputs=(x, weights, ends), threads=1)
    for each in found:
        ends = torch.tensor(each, dtype=torch.int32)
        assert_close(program(x, weights, ends), _one_by_one, (x, weights, ends))


def test_products_of_pytorch_itself() -> None:
    x, weights = torch.randn(11, 8).bfloat16(), torch.randn(3, 8, 16).bfloat16()
    ends = torch.tensor([4, 4, 11], dtype=torch.int32)
    module = module_of(lambda x, weights, ends: torch.nn.functional.grouped_mm(x, weights, offs=ends))
    program = tilewright.compile(module, example_inputs=(x, weights, ends), threads=1)
    assert_close(program(x, weights, ends), _one_by_one, (x, weights, ends))
