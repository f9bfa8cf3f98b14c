"""Bags of embeddings: in our kernels, and with PyTorch's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from torch_cases import module_of

torch = pytest.importorskip("torch")
_bag = torch.nn.functional.embedding_bag


def test_embedding_bags_are_those_of_pytorch() -> None:
    generator = torch.Generator().manual_seed(6)
    table = torch.randn(11, 5, generator=generator)
    rows = torch.randint(11, (12,), generator=generator)
    rows[:3] = 4  # the first bag has nothing but padding below
    offsets = torch.tensor([0, 3, 3, 8])  # the second bag is empty
    weights = torch.rand(12, generator=generator)

    def forms(table: Any, rows: Any, offsets: Any, weights: Any) -> tuple[Any, ...]:
        equal, equal_weights = rows.reshape(3, 4), weights.reshape(3, 4)
        return (
            _bag(rows, table, offsets, mode="sum"),
            _bag(rows, table, offsets, mode="sum", per_sample_weights=weights, padding_idx=4),
            _bag(rows, table, offsets, mode="mean"),
            _bag(rows, table, offsets, mode="mean", padding_idx=4),
            _bag(rows, table, offsets, mode="max"),
            _bag(rows, table, offsets, mode="max", padding_idx=4),
            _bag(rows, table, offsets, mode="sum", include_last_offset=True),
            _bag(equal, table, mode="sum", per_sample_weights=equal_weights),
            _bag(equal, table, mode="mean"),
            _bag(equal, table, mode="mean", padding_idx=4),
            _bag(equal, table, mode="max"),
        )

    arguments = (table, rows, offsets, weights)
    program = tilewright.compile(torch.export.export(module_of(forms), arguments), threads=1)
    assert program.runtime == "direct"
    results = program(*(argument.numpy() for argument in arguments))
    # The largest bag has five rows, each with up to two roundings.
    for result, want in zip(results, forms(*arguments), strict=True):
        np.testing.assert_allclose(result, want.numpy(), rtol=1e-6, atol=1e-6)


def test_bags_of_equal_length_do_not_look_for_their_rows() -> None:
    from tilewright.frontends.pytorch_ops import decompositions

    exported = torch.export.export(
        torch.nn.EmbeddingBag(23, 9, mode="sum").eval(), (torch.zeros(5, 4, dtype=torch.int64),)
    )
    graph = exported.run_decompositions(decompositions()).graph
    assert torch.ops.aten.ge.Tensor not in {node.target for node in graph.nodes}


def test_an_infinite_row_stays_in_its_bags() -> None:
    table = torch.ones(23, 9)
    table[7] = float("inf")
    arguments = (torch.tensor([1, 7, 2, 4]), torch.tensor([0, 2]))
    bag = module_of(lambda rows, offsets: _bag(rows, table, offsets, mode="sum"))
    program = tilewright.compile(torch.export.export(bag, arguments), threads=1)
    np.testing.assert_array_equal(
        program(*(argument.numpy() for argument in arguments)), bag(*arguments).numpy()
    )
