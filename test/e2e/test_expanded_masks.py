"""Tests of masks and biases that are computed small and expanded over heads, batch or rows, or several of them. The
dims of the expanded tensor are not those of the grid that reads it. Results are compared with float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper, numpy_helper
from tilewright.simulator.programs import simulate_program

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

Array = np.ndarray[Any, Any]

BATCH, HEADS, ROWS, COLUMNS = 3, 5, 7, 37
SHAPES = {
    "heads": [BATCH, 1, 1, COLUMNS],
    "batch": [1, HEADS, 1, COLUMNS],
    "rows": [BATCH, HEADS, 1, COLUMNS],
    "batch and heads": [1, 1, ROWS, COLUMNS],
    "all but columns": [1, 1, 1, COLUMNS],
    "columns": [BATCH, HEADS, ROWS, 1],
}
TYPES = {"f32": (TensorProto.FLOAT, np.float32), "f16": (TensorProto.FLOAT16, np.float16)}


def _model(shape: list[int], kind: str, element: int, *, merged: bool) -> onnx.ModelProto:
    """Adds a mask to scores, then applies softmax. A boolean mask becomes 0 or -inf, and a numeric mask is scaled,
    before it is expanded; `merged` heads and batches are one dim, as in `nn.MultiheadAttention`."""
    numpy_type = helper.tensor_dtype_to_np_dtype(element)
    scores = [BATCH * HEADS, ROWS, COLUMNS] if merged else [BATCH, HEADS, ROWS, COLUMNS]
    constants = {
        "low": np.array(-np.inf, numpy_type),
        "zero": np.array(0, numpy_type),
        "half": np.array(0.5, numpy_type),
        "whole": np.array([BATCH, HEADS, ROWS, COLUMNS], np.int64),
        "merged": np.array(scores, np.int64),
    }
    nodes = [
        helper.make_node("Where", ["mask", "low", "zero"], ["small"], name="mask_to_numbers")
        if kind == "bool"
        else helper.make_node("Mul", ["mask", "half"], ["small"], name="scale_mask"),
        helper.make_node("Expand", ["small", "whole"], ["large"], name="expand_mask"),
        helper.make_node("Reshape", ["large", "merged"], ["shaped"], name="merge_mask"),
        helper.make_node("Add", ["scores", "shaped"], ["masked"], name="add_mask"),
        helper.make_node("Softmax", ["masked"], ["p"], name="softmax", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "masked",
        [
            helper.make_tensor_value_info("mask", TensorProto.BOOL if kind == "bool" else element, shape),
            helper.make_tensor_value_info("scores", element, scores),
        ],
        [helper.make_tensor_value_info("p", element, scores)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def _inputs(shape: list[int], kind: str, numpy_type: Any, *, merged: bool) -> list[Array]:
    generator = np.random.default_rng(len(kind) + sum(shape))
    mask = generator.random(shape) < 0.3 if kind == "bool" else generator.standard_normal(shape)
    if kind == "bool" and shape[-1] > 1:
        mask[..., 0] = False  # no row is masked completely
    if kind == "bool" and shape[-1] == 1:
        mask[...] = False
    scores = generator.standard_normal((BATCH, HEADS, ROWS, COLUMNS)).astype(numpy_type)
    flat = scores.reshape(BATCH * HEADS, ROWS, COLUMNS) if merged else scores
    return [mask if kind == "bool" else mask.astype(numpy_type), flat]


def _expected(mask: Array, scores: Array, kind: str) -> Array:
    small = np.where(mask, -np.inf, 0.0) if kind == "bool" else mask.astype(np.float64) * 0.5
    masked = scores.reshape(BATCH, HEADS, ROWS, COLUMNS).astype(np.float64) + small
    shifted = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True)).reshape(scores.shape)


def _check(output: Array, expected: Array, element: str) -> None:
    # Sums of 37 terms in f32; for f16 also the roundings of the sum, of the scaled mask and of the result.
    tolerance = 1e-5 if element == "f32" else 4e-3
    np.testing.assert_allclose(output.astype(np.float64), expected, rtol=tolerance, atol=tolerance * 1e-2)


@pytest.mark.parametrize("merged", [False, True], ids=["apart", "merged"])
@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("kind", ["bool", "number"])
@pytest.mark.parametrize("over", SHAPES)
def test_expanded_masks_are_right(over: str, kind: str, element: str, *, merged: bool) -> None:
    shape, (onnx_type, numpy_type) = SHAPES[over], TYPES[element]
    program = tilewright.compile(_model(shape, kind, onnx_type, merged=merged), strict=True)
    inputs = _inputs(shape, kind, numpy_type, merged=merged)
    assert program.kernels
    _check(program(*inputs)[0], _expected(inputs[0], inputs[1], kind), element)


@pytest.mark.cpu_levels("cpu")
@pytest.mark.parametrize("merged", [False, True], ids=["apart", "merged"])
@pytest.mark.parametrize("kind", ["bool", "number"])
@pytest.mark.parametrize("over", SHAPES)
def test_expanded_masks_are_right_on_gpus(over: str, kind: str, tmp_path: Path, *, merged: bool) -> None:
    shape, (onnx_type, numpy_type) = SHAPES[over], TYPES["f32"]
    model = _model(shape, kind, onnx_type, merged=merged)
    program = tilewright.compile(model, "cuda:h200", strict=True, dump_dir=tmp_path)
    inputs = _inputs(shape, kind, numpy_type, merged=merged)
    outputs = simulate_program(program, tmp_path, inputs).outputs
    assert outputs is not None
    _check(outputs[0], _expected(inputs[0], inputs[1], kind), "f32")
