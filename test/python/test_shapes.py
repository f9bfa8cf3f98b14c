"""Shape arithmetic in an ONNX graph is replaced by its values before IREE's importer sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import NodeProto, TensorProto, helper, numpy_helper
from tilewright.frontends.rewrites.shapes import fold_shapes

Array = np.ndarray[Any, Any]


def folded(
    nodes: Sequence[NodeProto],
    constants: dict[str, Any] | None = None,
    *,
    shape: Sequence[int | str] = (4, 6, 8),
) -> dict[str, Array | None]:
    """Returns the values of nodes that are constants after folding; `shape` is that of x."""
    arrays = {name: np.asarray(array) for name, array in (constants or {}).items()}
    result = helper.make_node("Identity", ["x"], ["y"])
    model = make_model([*nodes, result], [value("x", list(shape))], [value("y", list(shape))], arrays)
    model = onnx.shape_inference.infer_shapes(model)
    fold_shapes(model)
    return {
        node.output[0]: numpy_helper.to_array(node.attribute[0].t) if node.op_type == "Constant" else None
        for node in model.graph.node
    }


def packed_projections(rng: np.random.Generator) -> tuple[onnx.ModelProto, Array, Array]:
    """Returns a model that projects [5, 2, 8] to three results, split as PyTorch's exporter does, with a Mod for the
    axis."""
    weights, x = rng.standard_normal((8, 24)), rng.standard_normal((5, 2, 8))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["all"]),
        helper.make_node("Mod", ["last", "rank"], ["axis"]),
        helper.make_node("Reshape", ["axis", "one"], ["end"]),
        helper.make_node("Shape", ["all"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "end"], ["front"]),
        helper.make_node("Concat", ["front", "parts"], ["parted"], axis=0),
        helper.make_node("Reshape", ["all", "parted"], ["split"]),
        helper.make_node("Unsqueeze", ["split", "zero"], ["five"]),
        helper.make_node("Transpose", ["five"], ["y"], perm=[3, 1, 2, 0, 4]),
    ]
    numbers = {"last": -1, "rank": 3, "one": [1], "zero": [0], "parts": [3, 8]}
    constants = {"w": weights.astype(np.float32)} | {k: np.array(v, np.int64) for k, v in numbers.items()}
    expected = (x @ weights).reshape(5, 2, 3, 8)[None].transpose(3, 1, 2, 0, 4)
    model = make_model(nodes, [value("x", [5, 2, 8])], [value("y", list(expected.shape))], constants)
    return model, x.astype(np.float32), expected


def test_shapes_behind_a_mod_are_known() -> None:
    model, x, expected = packed_projections(np.random.default_rng(0))
    np.testing.assert_allclose(tilewright.compile(model, threads=1)(x)[0], expected, rtol=1e-5, atol=1e-5)


def test_what_follows_from_shapes_is_folded() -> None:
    values = folded(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Gather", ["shape", "last"], ["width"]),
            helper.make_node("Cast", ["width"], ["real"], to=TensorProto.FLOAT),
            helper.make_node("Sqrt", ["real"], ["root"]),
            helper.make_node("Div", ["shape", "minus"], ["quotient"]),
        ],
        {"last": np.int64(2), "minus": np.int64(-3)},
    )
    assert values["shape"] is not None and values["shape"].tolist() == [4, 6, 8]
    assert values["root"] == np.sqrt(np.float32(8))
    assert values["quotient"] is not None and values["quotient"].tolist() == [
        -1,
        -2,
        -2,
    ]  # rounds towards zero, as ONNX does


def test_a_known_condition_leaves_one_branch() -> None:
    """The model has two Ifs whose branches use the same names, one of them an If inside a branch."""

    def branch(*nodes: NodeProto) -> onnx.GraphProto:
        return helper.make_graph(
            nodes, "branch", [], [helper.make_tensor_value_info("result", TensorProto.FLOAT, None)]
        )

    def choice(condition: str, name: str, operand: str) -> NodeProto:
        double = branch(helper.make_node("Add", [operand, operand], ["result"]))
        square = branch(helper.make_node("Mul", [operand, operand], ["result"]))
        return helper.make_node("If", [condition], [name], then_branch=double, else_branch=square)

    nested = branch(
        helper.make_node("Neg", ["once"], ["negative"]),
        choice("no", "inner", "negative"),
        helper.make_node("Identity", ["inner"], ["result"]),
    )
    other = branch(helper.make_node("Neg", ["once"], ["result"]))
    nodes = [
        helper.make_node("Size", ["x"], ["size"]),
        helper.make_node("Less", ["size", "many"], ["yes"]),
        helper.make_node("Not", ["yes"], ["no"]),
        choice("yes", "once", "x"),
        helper.make_node("If", ["yes"], ["y"], then_branch=nested, else_branch=other),
    ]
    model = make_model(nodes, [value("x", [5])], [value("y", [5])], {"many": np.array(6)})
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(x)[0], (2 * x) ** 2)


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("ConstantOfShape", ["huge"], ["made"]),
        helper.make_node("Expand", ["one", "huge"], ["made"]),
        helper.make_node("Tile", ["one", "huge"], ["made"]),
        helper.make_node("Range", ["zero", "many", "step"], ["made"]),
        helper.make_node("Range", ["zero", "many", "zero"], ["made"]),
        helper.make_node("Div", ["many", "zero"], ["made"]),
        helper.make_node("RandomUniformLike", ["one"], ["made"], dtype=TensorProto.FLOAT),
        helper.make_node("Mul", ["halves", "halves"], ["made"]),
        helper.make_node("Shape", ["x"], ["made"]),
    ],
    ids=lambda node: node.op_type,
)
def test_what_is_large_or_undefined_or_a_weight_stays(node: NodeProto) -> None:
    constants = {
        "huge": [1 << 40],
        "one": [1],
        "zero": 0,
        "many": 1 << 40,
        "step": 1,
        "halves": np.full(3, 0.5),
    }
    assert folded([node], constants, shape=["rows", 6, 8])["made"] is None


def test_results_of_the_model_stay() -> None:
    node = helper.make_node("Shape", ["x"], ["y"])
    model = make_model([node], [value("x", [4, 6])], [value("y", [2], TensorProto.INT64)])
    assert not fold_shapes(onnx.shape_inference.infer_shapes(model))
