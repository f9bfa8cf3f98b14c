"""Bags of embeddings: PyTorch's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from torch_cases import module_of

torch = pytest.importorskip("torch")

_FORMS: dict[str, dict[str, Any]] = {
    "sum": {"mode": "sum"},
    "mean": {"mode": "mean"},
    "max": {"mode": "max"},
    "sum, with padding": {"mode": "sum", "padding_idx": 3},
    "mean, with padding": {"mode": "mean", "padding_idx": 3},
    "max, with padding": {"mode": "max", "padding_idx": 3},
}


def _check(bag: Any, *arguments: Any) -> None:
    program = tilewright.compile(torch.export.export(bag, arguments), threads=1)
    result = program(*(argument.numpy() for argument in arguments))
    np.testing.assert_allclose(result, bag(*arguments).detach().numpy(), rtol=2e-6, atol=2e-6)


def _bag(**form: Any) -> Any:
    torch.manual_seed(11)
    return torch.nn.EmbeddingBag(23, 9, **form).eval()


@pytest.mark.parametrize("name", _FORMS)
def test_bags_of_equal_length_are_a_dim(name: str) -> None:
    indices = torch.randint(0, 23, (5, 4), generator=torch.Generator().manual_seed(2))
    indices[1, :] = 3
    indices[2, 1] = 3
    _check(_bag(**_FORMS[name]), indices)


def test_bags_of_equal_length_do_not_look_for_their_rows() -> None:
    from tilewright.frontends.pytorch_ops import decompositions

    exported = torch.export.export(_bag(mode="sum"), (torch.zeros(5, 4, dtype=torch.int64),))
    graph = exported.run_decompositions(decompositions()).graph
    assert torch.ops.aten.ge.Tensor not in {node.target for node in graph.nodes}


@pytest.mark.parametrize("name", _FORMS)
def test_bags_may_have_lengths_of_their_own(name: str) -> None:
    indices = torch.randint(0, 23, (17,), generator=torch.Generator().manual_seed(3))
    indices[4:7] = 3
    _check(_bag(**_FORMS[name]), indices, torch.tensor([0, 4, 4, 7, 16]))


def test_the_last_offset_may_be_the_end() -> None:
    indices = torch.randint(0, 23, (12,), generator=torch.Generator().manual_seed(4))
    _check(_bag(mode="mean", include_last_offset=True), indices, torch.tensor([0, 5, 12]))


def test_rows_may_have_weights() -> None:
    table = torch.randn(23, 9, generator=torch.Generator().manual_seed(11))
    weighted = module_of(
        lambda indices, weights: torch.nn.functional.embedding_bag(
            indices, table, per_sample_weights=weights, mode="sum"
        )
    )
    indices = torch.randint(0, 23, (5, 4), generator=torch.Generator().manual_seed(5))
    _check(weighted, indices, torch.rand(5, 4, generator=torch.Generator().manual_seed(6)))


def test_an_infinite_row_stays_in_its_bags() -> None:
    bag = _bag(mode="sum")
    with torch.no_grad():
        bag.weight[7] = float("inf")
    _check(bag, torch.tensor([1, 7, 2, 4]), torch.tensor([0, 2]))
