"""Attention is one kernel, however its graph spells it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tilewright
from attention_models import PLAIN, Attention, kernels
from tilewright.reference.oracle import float64_reference

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=9)]

_WAYS = {
    "plain": PLAIN,
    "three dims": replace(PLAIN, four=False),
    "scaled query": replace(PLAIN, scale="query"),
    "transposed key": replace(PLAIN, transposed_key=True),
    "split heads": replace(PLAIN, heads_inside=True),
    "causal": replace(PLAIN, mask="causal", queries=53),
    "masked keys": replace(PLAIN, mask="keys"),
    "batch": replace(PLAIN, batch=2, mask="keys", queries=64, keys=64),
    "batch of split heads": replace(PLAIN, batch=2, heads_inside=True, queries=64, keys=64),
    "batch, grouped": replace(PLAIN, batch=2, heads=6, key_heads=2, queries=64, keys=64),
    "grouped": replace(PLAIN, heads=6, key_heads=2),
    "one key head": replace(PLAIN, heads=4, key_heads=1),
    "few queries": replace(PLAIN, queries=2, keys=130),
    "whole register blocks": replace(PLAIN, queries=96, keys=128, head_size=64, value_size=64),
    "values wider than keys": replace(PLAIN, keys=19, value_size=70),
}


# Heads, masks and layouts vary from model to model; none of them may cost a second kernel.
@pytest.mark.parametrize("attention", _WAYS.values(), ids=_WAYS.keys())
def test_is_one_kernel(attention: Attention) -> None:
    model = attention.build()
    program = tilewright.compile(model, threads=[3])
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    # A row is a weighted mean of values around one; its weights have the rounding errors of scores around one.
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-5, atol=2e-6)
    assert len(kernels(program)) == 1, kernels(program)
    assert not [op for op in program.metadata.report.left_to_iree if op.is_dispatch]


# In bf16 and f16 the errors stay within one rounding for each value that the graph stores.
@pytest.mark.parametrize(
    ("way", "dtype"),
    [
        ("plain", "bf16"),
        ("causal", "bf16"),
        ("grouped", "bf16"),
        ("few queries", "bf16"),
        ("masked keys", "f16"),
    ],
)
def test_is_one_kernel_in_narrow_types(way: str, dtype: str) -> None:
    attention = replace(_WAYS[way], dtype=dtype)
    model = attention.build()
    program = tilewright.compile(model, threads=[3])
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    error = program(*inputs)[0].astype(np.float64) - expected
    # Scores, scaled scores, weights and the result are each rounded once.
    unit = 2.0**-9 if dtype == "bf16" else 2.0**-12
    assert np.linalg.norm(error) <= 4 * unit * np.linalg.norm(expected)
    assert len(kernels(program)) == 1, kernels(program)
    assert "division after its contraction" in program.explain()
    assert ("exponentials within 2^-13" in program.explain()) == (dtype == "bf16")
