"""Models that keep the first elements of sorted rows, and what they must return."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import ModelProto, TensorProto, helper
from tilewright.reference.oracle import Array

SORTED_TYPES = {
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    TensorProto.DOUBLE: np.dtype(np.float64),
    TensorProto.INT8: np.dtype(np.int8),
    TensorProto.UINT8: np.dtype(np.uint8),
    TensorProto.INT32: np.dtype(np.int32),
    TensorProto.INT64: np.dtype(np.int64),
}


def top_model(shape: tuple[int, ...], kept: int, *, axis: int, largest: bool, element: int) -> ModelProto:
    short = [kept if dim == axis % len(shape) else size for dim, size in enumerate(shape)]
    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["values", "indices"], axis=axis, largest=int(largest))],
        "top",
        [helper.make_tensor_value_info("x", element, shape)],
        [
            helper.make_tensor_value_info("values", element, short),
            helper.make_tensor_value_info("indices", TensorProto.INT64, short),
        ],
        [helper.make_tensor("k", TensorProto.INT64, [1], [kept])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])


def repeated_values(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Returns values of which many are equal."""
    return np.random.default_rng().integers(0 if dtype.kind == "u" else -20, 20, shape).astype(dtype)


def first_of_sorted(x: Array, kept: int, axis: int, *, largest: bool) -> tuple[Array, Array]:
    """Returns the first elements of a stable sort, in which NaN is greater than every number, and their indices."""
    wide = x if x.dtype.kind in "iu" else x.astype(np.float64)
    if largest:  # the order of equal elements stays, because both the rows and the indices are reversed
        indices = x.shape[axis] - 1 - np.argsort(np.flip(wide, axis), axis=axis, kind="stable")
        indices = np.flip(indices, axis)
    else:
        indices = np.argsort(wide, axis=axis, kind="stable")
    indices = np.take(indices, range(kept), axis)
    return np.take_along_axis(x, indices, axis), indices
