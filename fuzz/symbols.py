"""Conversion of models with static shapes to dynamic ones: sizes become symbols, with which a program runs for any
values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto

from fuzz.builder import Array
from fuzz.op_table import OpCase


def with_symbols(case: OpCase) -> ModelProto | None:
    """Returns the model with a symbol for every size of its inputs that may change, or None if none may.

    Equal sizes become one symbol. Sizes of 1 stay, because they broadcast, and so do sizes that a constant has as well.
    """
    sizes = changeable_sizes(case)
    if not sizes:
        return None
    model = ModelProto()
    model.CopyFrom(case.model)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value in sizes:
                dim.dim_param = f"{case.id}_{dim.dim_value}"
    for number, value in enumerate(model.graph.output):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{case.id}_out{number}_{axis}"
    return model


def changeable_sizes(case: OpCase) -> frozenset[int]:
    """Returns the sizes of a case's inputs that are symbols in `with_symbols`."""
    kept = {size for tensor in case.model.graph.initializer for size in tensor.dims} | {1}
    if any(attribute.name == "group" for node in case.model.graph.node for attribute in node.attribute):
        # the groups of a convolution divide its channels: axis 1 of the image, axes 0 and 1 of the weights
        kept |= {size for array in case.inputs for size in array.shape[:2]}
    return frozenset(size for array in case.inputs for size in array.shape) - kept


def resized(case: OpCase, sizes: Sequence[tuple[int, int]], rng: np.random.Generator) -> tuple[Array, ...]:
    """Returns inputs of other sizes, given as pairs of old and new; the values of each array are drawn from its old
    values."""
    new = dict(sizes)
    return tuple(
        np.asarray(rng.choice(array.reshape(-1), size=[new.get(size, size) for size in array.shape]))
        for array in case.inputs
    )
