"""Refusal of tensors whose size overflows, before a compiler multiplies their lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.rule import subgraphs

_MOST_ELEMENTS = 2**60
"""Elements from which on the size in bytes, or an offset, may overflow 64 bits: IREE then crashes, or compiles ops to
nothing."""


def check_sizes(graph: onnx.GraphProto) -> None:
    """Raises `ModelError` for the first op with a result that is too large or has a negative length. Types must have
    been inferred."""
    values = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
    for node in graph.node:
        for name in node.output:
            if name in values:
                _check(values[name], where=f"'{node.name}'")
        for inner in subgraphs(node):
            check_sizes(inner)


def check_inputs(graph: onnx.GraphProto, *, name: str) -> None:
    """Raises `ModelError` for the first input that is too large: ONNX's shape inference may take gigabytes for it."""
    for value in graph.input:
        lengths = [dim.dim_value for dim in value.type.tensor_type.shape.dim if dim.dim_value > 0]
        _check_product(value, lengths, where=name)


def _check(value: onnx.ValueInfoProto, *, where: str) -> None:
    lengths = [dim.dim_value for dim in value.type.tensor_type.shape.dim if dim.HasField("dim_value")]
    if min(lengths, default=0) < 0:
        raise ModelError(
            f"'{value.name}' of {_shown(lengths)} has a negative length", where=where, hint="check its shape"
        )
    _check_product(value, lengths, where=where)


def _check_product(value: onnx.ValueInfoProto, lengths: Sequence[int], *, where: str) -> None:
    # A length of 0 hides an overflow of the others.
    if math.prod(length or 1 for length in lengths) >= _MOST_ELEMENTS:
        raise ModelError(
            f"'{value.name}' of {_shown(lengths)} has more elements than can be addressed",
            where=where,
            hint="check its shape",
        )


def _shown(lengths: Sequence[int]) -> str:
    return "x".join(map(str, lengths))
