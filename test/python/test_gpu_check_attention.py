"""Attentions that a GPU check recognizes in its models, for the peers that have a kernel for them."""

from __future__ import annotations

import pytest

from benchmarks.gpu_check.attention import Attention, recognize
from benchmarks.gpu_check.case import build_model
from benchmarks.peers import UnsupportedError


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("name", "size", "is_causal", "is_grouped"),
    [
        ("g6-softmax-chain", 80, False, False),
        ("g10-softmax-chain", 64, False, False),
        ("causal-attention-12x128x64", 64, True, False),
        ("grouped-attention-8x512x64", 64, False, True),
        ("causal-grouped-attention-32x256x128", 128, True, True),
    ],
)
def test_attentions_are_recognized(
    name: str, dtype: str, size: int, *, is_causal: bool, is_grouped: bool
) -> None:
    found = recognize(build_model(name, dtype))
    assert found == Attention(scale=found.scale, is_causal=is_causal, is_grouped=is_grouped)
    assert found.scale == pytest.approx(size**-0.5, rel=1e-6 if dtype == "f32" else 4e-3)


@pytest.mark.parametrize("name", ["g6-chain", "dense-512x768x2", "masked-softmax-77x77x5", "bert-small"])
def test_what_is_no_attention_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="not one attention"):
        recognize(build_model(name, "f16"))


def test_an_attention_with_anything_else_in_it_is_refused() -> None:
    """With another mask, softmax axis or operand, functions for attention would compute something else."""
    masked, turned, swapped = (build_model("causal-attention-12x128x64", "f16") for _ in range(3))
    [mask] = (tensor for tensor in masked.graph.initializer if tensor.name.startswith("causal_mask"))
    mask.raw_data = bytes(len(mask.raw_data))
    [softmax] = (node for node in turned.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = -2
    swapped.graph.node[-1].input[1] = "key"
    for model in (masked, turned, swapped):
        with pytest.raises(UnsupportedError, match="not one attention"):
            recognize(model)
