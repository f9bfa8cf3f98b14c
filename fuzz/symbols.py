"""Models of static shapes made dynamic: sizes become symbols, which a program is then called with any values for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto

from fuzz.builder import Array
from fuzz.op_table import OpCase


def with_symbols(case: OpCase) -> ModelProto | None:
    """The model with a symbol for every size of its inputs that may change; None where none may.

    Equal sizes are one symbol. Sizes of one broadcast, and those that a constant has as well are its own: both stay.
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
    """The sizes of a case's inputs that are a symbol in `with_symbols`."""
    kept = {size for tensor in case.model.graph.initializer for size in tensor.dims} | {1}
    return frozenset(size for array in case.inputs for size in array.shape) - kept


def resized(case: OpCase, sizes: Sequence[tuple[int, int]], rng: np.random.Generator) -> tuple[Array, ...]:
    """Inputs of other sizes, given as pairs of old and new: each array's values, drawn again from among its own."""
    new = dict(sizes)
    return tuple(
        np.asarray(rng.choice(array.reshape(-1), size=[new.get(size, size) for size in array.shape]))
        for array in case.inputs
    )
