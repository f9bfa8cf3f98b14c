"""PyTorch's fused kernels of Transformer layers, spelled out by smaller ops.

`nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call them in inference, as the whole layer in one op.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

_OF_PAIRS, _OF_KEYS = 0, 1
"""Kinds of masks: of pairs of a query and a key [queries, keys], and of keys [batch, keys]. Any other kind is of the
scores [batch, heads, queries, keys]."""


def encoder_layer(
    source: Any,
    embed_dim: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    out_weight: Any,
    out_bias: Any,
    use_gelu: bool,  # noqa: FBT001 - the op's own signature
    norm_first: bool,  # noqa: FBT001
    eps: float,
    norm1_weight: Any,
    norm1_bias: Any,
    norm2_weight: Any,
    norm2_bias: Any,
    up_weight: Any,
    up_bias: Any,
    down_weight: Any,
    down_bias: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """Computes `aten._transformer_encoder_layer_fwd`."""

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    x = norm(source, norm1_weight, norm1_bias) if norm_first else source
    x, _ = attention(
        x, x, x, embed_dim, heads, qkv_weight, qkv_bias, out_weight, out_bias, mask, False, True, mask_type
    )
    x = x + source
    x = x if norm_first else norm(x, norm1_weight, norm1_bias)
    y = norm(x, norm2_weight, norm2_bias) if norm_first else x
    y = functional.linear(y, up_weight, up_bias)
    y = functional.linear(functional.gelu(y) if use_gelu else functional.relu(y), down_weight, down_bias)
    return x + y if norm_first else norm(x + y, norm2_weight, norm2_bias)


def attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    out_weight: Any,
    out_bias: Any,
    mask: Any = None,
    need_weights: bool = True,  # noqa: FBT001, FBT002 - the op's own signature
    average_attn_weights: bool = True,  # noqa: FBT001, FBT002
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    """Computes `aten._native_multi_head_attention`, which PyTorch calls for self-attention only.

    The second result has no elements if the weights are not needed.
    """
    batch, length, _ = query.shape
    projected = functional.linear(query, qkv_weight, qkv_bias)
    split = projected.reshape(batch, length, 3, heads, embed_dim // heads).permute(2, 0, 3, 1, 4)
    queries, keys, values = split.unbind(0)
    scores = (queries / math.sqrt(embed_dim // heads)) @ keys.transpose(-2, -1)
    if mask is not None:
        if mask_type == _OF_PAIRS:
            mask = mask.reshape(1, 1, length, length)
        elif mask_type == _OF_KEYS:
            mask = mask.reshape(batch, 1, 1, length)
        scores = scores.masked_fill(mask, -math.inf)
    weights = functional.softmax(scores, dim=-1)
    mixed = (weights @ values).transpose(1, 2).reshape(batch, length, embed_dim)
    result = functional.linear(mixed, out_weight, out_bias)
    if not need_weights:
        return result, torch.empty(0, dtype=result.dtype)
    return result, weights.mean(1) if average_attn_weights else weights


def flash_attention(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002 - the op's own signature
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Any, Any]:
    """Computes `aten._scaled_dot_product_flash_attention_for_cpu`, with the strides of its kernel.

    Later views, such as those of heads as one dim, were recorded for these strides; the result of PyTorch's own
    decomposition has others.
    """
    mixed, weights = torch.ops.aten._scaled_dot_product_attention_math(
        query,
        key,
        value,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return mixed.transpose(1, 2).contiguous().transpose(1, 2), weights
