"""Recognises models that are one attention, for systems that have a function for it.

A model is recognised only if it is equal, node by node, to what the workloads' builder makes for the sizes of its
inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, numpy_helper

from benchmarks.peers import UnsupportedError
from benchmarks.repetition import graph_inputs
from benchmarks.workloads.contractions import AttentionOptions, ChainOptions, attention, softmax_chain
from benchmarks.workloads.narrow import to_narrow

_TYPES: dict[int, str] = {TensorProto.FLOAT16: "f16", TensorProto.BFLOAT16: "bf16"}


@dataclass(frozen=True, kw_only=True)
class Attention:
    """softmax(query @ keyᵀ * scale) @ value of the three inputs, [batch, rows, size] or [batch, heads, rows, size]."""

    scale: float
    """Scale in the model, rounded to its type."""
    is_causal: bool
    is_grouped: bool
    """True if several query heads share one head of keys and values."""


def recognize(model: ModelProto) -> Attention:
    """Returns the attention that the model is; raises UnsupportedError if it is anything else."""
    inputs = graph_inputs(model)
    shapes = [_shape(value) for value in inputs]
    if len(shapes) == 3 and all(all(shape) for shape in shapes):
        dtype = _TYPES.get(inputs[0].type.tensor_type.elem_type)
        for candidate, is_causal in _candidates(*shapes):
            if (to_narrow(candidate, dtype) if dtype else candidate).graph == model.graph:
                is_grouped = len(shapes[0]) == 4 and shapes[0][1] != shapes[1][1]
                return Attention(scale=_scale(model.graph), is_causal=is_causal, is_grouped=is_grouped)
    raise UnsupportedError("it is not one attention")


def _candidates(
    query: Sequence[int], key: Sequence[int], value: Sequence[int]
) -> Iterator[tuple[ModelProto, bool]]:
    """Yields the models that the builder makes for inputs of these shapes, and whether each is causal."""
    ranks = [len(query), len(key), len(value)]
    if ranks == [3, 3, 3]:
        batch, m, k = query
        yield softmax_chain(ChainOptions(batch=batch, m=m, n=value[2], k=k, l=key[1])), False
    if ranks == [4, 4, 4]:
        _, heads, sequence, size = query
        for is_causal in (False, True):
            options = AttentionOptions(
                heads=heads, key_value_heads=key[1], sequence=sequence, head_size=size, is_causal=is_causal
            )
            yield attention(options), is_causal


def _scale(graph: GraphProto) -> float:
    """Returns the only scalar that the builder makes."""
    [scale] = (tensor for tensor in graph.initializer if not tensor.dims)
    return float(numpy_helper.to_array(scale).item())


def _shape(value: ValueInfoProto) -> tuple[int, ...]:
    """Returns the shape, with 0 for an unknown dimension."""
    return tuple(dimension.dim_value for dimension in value.type.tensor_type.shape.dim)
