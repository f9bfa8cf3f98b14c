"""Conversion of models with static shapes to dynamic ones: sizes become symbols, with which a program runs for any
values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from fuzz.builder import Array
from fuzz.op_table import OpCase

_OPEN = "open"
"""Beginning of the names of open dims, which end with their size."""


def with_open_sizes(model: ModelProto) -> ModelProto:
    """Returns the model with open dims for all sizes of its inputs that no constant has, named after their sizes.

    Constants hold shapes, pads and weights, which would not fit other sizes.
    """
    kept = {size for tensor in model.graph.initializer for size in _numbers(tensor)} | {0, 1}
    opened = ModelProto()
    opened.CopyFrom(model)
    for value in opened.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value not in kept:
                dim.dim_param = f"{_OPEN}{dim.dim_value}"
    for number, value in enumerate(opened.graph.output):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{model.graph.name}_{number}_{axis}"
    return opened


def _numbers(tensor: TensorProto) -> list[int]:
    array = numpy_helper.to_array(tensor)
    values = np.abs(array).ravel().tolist() if array.dtype == np.int64 else []
    return [*tensor.dims, *map(int, values)]


def with_known_sizes(model: ModelProto) -> ModelProto:
    """Returns a model of `with_open_sizes` with the sizes that its dims are named after."""
    known = ModelProto()
    known.CopyFrom(model)
    for value in known.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param.startswith(_OPEN):
                dim.dim_value = int(dim.dim_param.removeprefix(_OPEN))
    return known


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
