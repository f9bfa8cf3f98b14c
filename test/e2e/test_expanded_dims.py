"""Expand along dims whose length is known only when the program is called."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper, numpy_helper
from tilewright.errors import ProgramError

pytestmark = pytest.mark.cpu_levels


def expanded(dims: list[str | int], shape: list[int]) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Expand", ["x", "shape"], ["y"])],
        "expanded",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(shape), "shape")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_one_element_is_repeated_and_others_stay() -> None:
    program = tilewright.compile(expanded(["n", 3, "m"], [2, 4, 1, 6]), threads=1)
    for n, m in [(1, 1), (1, 6), (4, 1), (4, 6)]:
        x = np.random.default_rng(n).standard_normal((n, 3, m)).astype(np.float32)
        (y,) = program(x)
        assert np.array_equal(y, np.broadcast_to(x, (2, 4, 3, 6)))


def test_a_length_that_is_neither_fails_when_called() -> None:
    program = tilewright.compile(expanded(["n", 3], [4, 3]), threads=1)
    with pytest.raises(ProgramError, match="Expand input has a dim"):
        program(np.zeros((2, 3), np.float32))
