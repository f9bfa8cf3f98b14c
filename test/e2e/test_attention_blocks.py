"""Attention walks keys in blocks, and leaves out those that a mask hides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from attention_models import PLAIN, Attention, in_blocks, one_right_kernel
from tilewright.reference.oracle import float64_reference

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=9)]


@pytest.mark.parametrize(
    ("attention", "block"),
    [
        (PLAIN, 16),
        (replace(PLAIN, mask="rows"), 24),
        (replace(PLAIN, mask="rows", dtype="bf16"), 16),
        (replace(PLAIN, mask="rows", dtype="f16", heads=6), 10),
        (replace(PLAIN, mask="causal", heads=4, key_heads=2, queries=53, dtype="bf16"), 7),
    ],
    ids=["f32", "f32 masked", "bf16 masked", "f16 masked", "bf16 causal grouped, odd blocks"],
)
def test_blocks_of_keys_add_up(attention: Attention, block: int) -> None:
    """The mask hides whole blocks of a row, the first ones or all, and the last block is shorter."""
    model = attention.build()
    program = in_blocks(model, attention.keys, block)
    inputs = attention.inputs(program)
    if attention.mask == "rows":
        inputs[-1][..., 4, : 2 * block] = -np.inf
        inputs[-1][..., 4, 2 * block :] = 0
        inputs[-1][..., 5, block:] = -np.inf
        inputs[-1][..., 5, :block] = 0
    (expected,) = float64_reference(model, inputs)
    got = program(*inputs)[0].astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    unit = {"f32": 2.0**-22, "bf16": 2.0**-9, "f16": 2.0**-12}[attention.dtype]
    error = np.nan_to_num(got) - np.nan_to_num(expected)
    assert np.linalg.norm(error) <= 4 * unit * np.linalg.norm(np.nan_to_num(expected))
    assert "online softmax of blocks" in program.explain()


@pytest.mark.parametrize(
    "attention",
    [
        replace(PLAIN, mask="causal"),
        replace(PLAIN, mask="causal", queries=90, heads=4, key_heads=2),
        replace(PLAIN, mask="causal", queries=53, dtype="bf16"),
        replace(PLAIN, mask="before", keys=90),
        replace(PLAIN, mask="infinite"),
    ],
    ids=[
        "f32",
        "more queries, grouped",
        "bf16",
        "more keys, written with indices",
        "rows of which nothing counts",
    ],
)
def test_blocks_that_a_mask_hides_are_left_out(attention: Attention) -> None:
    """Keys behind the last one that counts are never read: they are NaN, which would show in the result."""
    model = attention.build()
    program = in_blocks(model, attention.keys, 16, form="online softmax with a causal bound", rows=6)
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    unit = {"f32": 2.0**-22, "bf16": 2.0**-9}[attention.dtype]

    def check(got: np.ndarray, rows: slice) -> None:
        np.testing.assert_array_equal(np.isnan(got[..., rows, :]), np.isnan(expected[..., rows, :]))
        of = np.nan_to_num(expected[..., rows, :])
        error = np.nan_to_num(got.astype(np.float64)[..., rows, :]) - of
        assert np.linalg.norm(error) <= 4 * unit * np.linalg.norm(of)

    check(program(*inputs)[0], slice(None))
    # The tile of the first rows ends before these keys.
    for tensor in inputs[1:3]:
        tensor[..., -1, :] = np.nan
    check(program(*inputs)[0], slice(0, 2))


# A causal mask hides half of the blocks, which the planner finds without a plan by hand.
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_causal_attention_leaves_blocks_out_by_itself(dtype: str) -> None:
    attention = Attention(
        heads=2, key_heads=2, queries=512, keys=512, head_size=64, value_size=64, mask="causal", dtype=dtype
    )
    program = one_right_kernel(attention, threads=1)
    assert "online softmax with a causal bound" in program.explain()
