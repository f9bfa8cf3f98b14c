"""Einsum of rows with several open dims by a matrix."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.cpu_levels


@pytest.mark.parametrize("equation", ["bij,jk->bik", "bij,kj->bik"])
def test_rows_of_any_number_are_multiplied(equation: str) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((4, 4)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "rows", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    program = tilewright.compile(model, threads=1)
    for shape in [(3, 5, 4), (1, 5, 4), (3, 1, 4)]:
        x = rng.standard_normal(shape).astype(np.float32)
        (y,) = program(x)
        np.testing.assert_allclose(y, np.einsum(equation, x, weights), rtol=1e-5, atol=1e-6)
