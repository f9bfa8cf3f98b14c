"""Builder of a small ONNX model from its nodes, and random bytes as its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

Array = np.ndarray


def one_graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    constants: Mapping[str, Any],
    output: tuple[int, tuple[int | str, ...]],
    *,
    opset: int = 17,
) -> onnx.ModelProto:
    """Builds a model whose inputs have the shapes and types of the arrays, with one output `y` of the given type and
    shape."""
    graph = helper.make_graph(
        list(nodes),
        "quantised",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in inputs.items()
        ],
        [helper.make_tensor_value_info("y", *output)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9 if opset > 18 else 8
    )


def random_bytes(rng: np.random.Generator, dtype: type, *shape: int) -> Array:
    """Returns random bytes that include both ends of the type's range."""
    info = np.iinfo(dtype)
    value = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    value.flat[0], value.flat[-1] = info.min, info.max
    return value
