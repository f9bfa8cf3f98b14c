"""Caches of PyTorch modules: rows are stored in place, one step after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright

torch = pytest.importorskip("torch")

_CACHE, _NEW = (2, 3, 11, 5), (2, 3, 1, 5)


class _Appending(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Appends a row to a cache [batch, heads, length, width] and multiplies all rows with a query."""

    def forward(self, past: Any, position: Any, new: Any, query: Any) -> dict[str, Any]:
        present = past.clone()
        present.index_copy_(2, position, new)
        return {"present": present, "scores": query @ present.transpose(2, 3)}


def test_a_cache_of_heads_goes_on_in_place() -> None:
    module, length = _Appending(), _CACHE[2]
    examples = (torch.zeros(_CACHE), torch.tensor([0]), torch.randn(_NEW), torch.randn(_NEW))
    program = tilewright.compile(module, example_inputs=examples, threads=1, state={"present": "past"})
    steps, past = program.steps(), torch.zeros(_CACHE)
    for position in (0, 4, length - 1):
        new, query = torch.randn(_NEW), torch.randn(_NEW)
        expected = module(past, torch.tensor([position]), new, query)
        (scores,) = steps(np.array([position]), new.numpy(), query.numpy())
        np.testing.assert_allclose(scores, expected["scores"].numpy(), rtol=1e-5, atol=1e-5)
        past = expected["present"]
    np.testing.assert_array_equal(steps.state("past"), past.numpy())
