"""Seeded inputs of ONNX models: the same arrays on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper

Array = np.ndarray[Any, Any]


class DrawingError(RuntimeError):
    """The inputs of a model cannot be drawn at random."""


def random_inputs(model: ModelProto, seed: int) -> list[Array]:
    """Returns inputs in the order of the graph's: floats standard normal within ±4, integers within ±4, masks 0/1.

    A mask is an input whose name contains "mask"; its first entry along the last axis is always 1, so that no softmax
    row is masked out completely. An input whose name contains "position" gets integers from 0 to 63, and one whose name
    contains "lengths" gets integers from a half to the whole of the first input's first dim, the steps of sequences.
    """
    rng = np.random.default_rng(seed)
    initialized = {tensor.name for tensor in model.graph.initializer}
    given = [value for value in model.graph.input if value.name not in initialized]
    steps = next(iter(_shape(given[0])), 0) if given else 0
    return [_random_input(value, rng, steps=steps) for value in given]


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _random_input(value: onnx.ValueInfoProto, rng: np.random.Generator, *, steps: int) -> Array:
    tensor = value.type.tensor_type
    shape = _shape(value)
    if any(dim.HasField("dim_param") for dim in tensor.shape.dim):
        raise DrawingError(
            f"input '{value.name}' has a dynamic shape; give it static sizes before asking for inputs"
        )
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if "mask" in value.name:
        mask = rng.random(shape) < 0.75
        mask[..., 0] = True
        return np.asarray(mask).astype(dtype)
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if "position" in value.name:
        return np.asarray(rng.integers(0, 64, shape)).astype(dtype)
    if "lengths" in value.name:
        return np.asarray(rng.integers(steps // 2, steps + 1, shape)).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        low = 0 if np.issubdtype(dtype, np.unsignedinteger) else -4
        return np.asarray(rng.integers(low, 5, shape)).astype(dtype)
    return np.asarray(np.clip(rng.standard_normal(shape), -4.0, 4.0)).astype(dtype)
