"""Reshape of several open dims, also where PyTorch makes it: the elements stay in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from onnx import TensorProto, helper, numpy_helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=4)]

_SHAPES = {
    "to one row": (["a", "b", 4], [1, -1, 4]),
    "to one column": (["a", "b", 4], [-1, 1, 4]),
    "to shorter rows": (["a", "b", 6], [-1, 3]),
    "with a known dim between": (["a", 4, "b"], [-1, 4]),
    "of copied dims": (["a", "b", 6], [0, 0, 2, 3]),
    "of one copied dim": (["a", "b", "c"], [0, 1, -1]),
}


@pytest.mark.parametrize("name", _SHAPES)
def test_open_dims_are_merged(name: str) -> None:
    dims, shape = _SHAPES[name]
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "reshape",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(shape), "shape")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    program = tilewright.compile(model, threads=1)
    for sizes in ({"a": 3, "b": 5, "c": 2}, {"a": 1, "b": 5, "c": 2}, {"a": 3, "b": 1, "c": 2}):
        x = np.random.default_rng(0).standard_normal([sizes.get(str(dim), dim) for dim in dims])
        wanted = [length or x.shape[axis] for axis, length in enumerate(shape)]
        (y,) = program(x.astype(np.float32))
        np.testing.assert_array_equal(y, x.astype(np.float32).reshape(wanted))


_PARTS = {"first": [0], "second": [1]}
"""Lengths of the operand, by their dims."""


@pytest.mark.parametrize(
    "parts",
    [
        ("first", "second", -1),
        ("first", "second", 2, -1),
        (-1, "second", 4),
        (0, "second", 2, -1),
        ("first", 0, 2, 2),
    ],
)
def test_open_dims_become_a_computed_shape(parts: tuple[str | int, ...]) -> None:
    numbers = {part: [part] for part in parts if isinstance(part, int)}
    constants = {f"c{part}": np.array(number) for part, number in {**_PARTS, **numbers}.items()}
    graph = helper.make_graph(
        [
            helper.make_node("Shape", ["x"], ["lengths"]),
            *(helper.make_node("Gather", ["lengths", f"c{part}"], [part]) for part in _PARTS),
            helper.make_node("Concat", [f"c{p}" if isinstance(p, int) else p for p in parts], ["s"], axis=0),
            helper.make_node("Reshape", ["x", "s"], ["y"]),
        ],
        "reshape",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(parts))],
        [numpy_helper.from_array(value.astype(np.int64), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    x = np.arange(60, dtype=np.float32).reshape(3, 5, 4)
    wanted = [x.shape[_PARTS[p][0]] if isinstance(p, str) else p or x.shape[i] for i, p in enumerate(parts)]
    (y,) = tilewright.compile(model, threads=1)(x)
    np.testing.assert_array_equal(y, x.reshape(wanted))


@pytest.mark.parametrize("op", ["Add", "Concat"])
def test_a_shape_is_computed_from_an_input(op: str) -> None:
    """The zero and the -1 are data."""
    shape, constant = ([0, -2], [0, 1]) if op == "Add" else ([0], [-1])
    attributes = {"axis": 0} if op == "Concat" else {}
    graph = helper.make_graph(
        [
            helper.make_node(op, ["given", "constant"], ["shape"], **attributes),
            helper.make_node("Reshape", ["x", "shape"], ["y"]),
        ],
        "reshape",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b", 4]),
            helper.make_tensor_value_info("given", TensorProto.INT64, [len(shape)]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])],
        [numpy_helper.from_array(np.array(constant, np.int64), "constant")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    program = tilewright.compile(model, threads=1)
    for rows, columns in ((3, 5), (7, 1)):
        x = np.random.default_rng(rows).standard_normal((rows, columns, 4)).astype(np.float32)
        (y,) = program(x, np.array(shape))
        np.testing.assert_array_equal(y, x.reshape(rows, -1))


@pytest.mark.parametrize("shape", [(1, -1, 4), (-1, 1, 4), (-1, 2)])
def test_pytorch_merges_open_dims(shape: tuple[int, ...]) -> None:
    check_in_pytorch(lambda x: x.reshape(shape))


@pytest.mark.parametrize("equation", ["bij,kj->bki", "bij,kj->kib", "bij,kj->"])
def test_pytorch_contracts_open_dims(equation: str) -> None:
    torch = pytest.importorskip("torch")
    weights = torch.arange(20.0).reshape(5, 4)
    check_in_pytorch(lambda x: torch.einsum(equation, x, weights))


def check_in_pytorch(function: Any) -> None:
    """Compares a function of a tensor with two open dims with PyTorch's results."""
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return function(x)

    batch, rows = (torch.export.Dim(name, min=2, max=16) for name in ("batch", "rows"))
    x = torch.arange(60.0).reshape(3, 5, 4)
    exported = torch.export.export(Module(), (x,), dynamic_shapes=({0: batch, 1: rows},))
    result = tilewright.compile(exported, threads=1)(x.numpy())
    np.testing.assert_array_equal(result, function(x).numpy())
