"""Ops that IREE's importer lacks or miscomputes, beside ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import tilewright
from one_graph import Array, one_graph
from onnx import NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

OPSET = 23


def run_beside_onnx(
    node: NodeProto, inputs: Mapping[str, Array], constants: Mapping[str, Array] | None = None
) -> tilewright.Program:
    """Compares the only result, and gives what was compiled."""
    constants = constants or {}
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, {**inputs, **constants})
    model = one_graph([node], inputs, constants, (TensorProto.FLOAT, expected.shape), opset=OPSET)
    program = tilewright.compile(model, threads=1)
    np.testing.assert_allclose(program(*inputs.values())[0], expected, rtol=1e-5, atol=1e-5)
    return program


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    """Three channels of two by two: as many as that is, they may be mistaken for one another."""
    node = helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode=mode)
    run_beside_onnx(node, {"x": normal(2, 12, 7, 9)})


@pytest.mark.parametrize(
    "image, attributes",
    [
        ((10, 10), {"kernel_shape": [3, 3], "strides": [2, 2]}),
        ((10, 9), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]}),
        ((5, 5), {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [1, 1, 1, 1]}),
        ((10, 10, 9), {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2], "dilations": [2, 2, 2]}),
    ],
    ids=["beyond", "padded", "begins in the padding", "dilated"],
)
def test_pools_that_count_their_padding_alone(
    image: tuple[int, ...], attributes: dict[str, list[int]]
) -> None:
    node = helper.make_node("AveragePool", ["x"], ["y"], ceil_mode=1, count_include_pad=1, **attributes)
    run_beside_onnx(node, {"x": normal(2, 3, *image)})


def test_a_window_that_begins_in_the_padding_is_refused() -> None:
    """ONNX's shape inference counts it where the model does not say."""
    node = helper.make_node(
        "AveragePool",
        ["x"],
        ["y"],
        ceil_mode=1,
        count_include_pad=1,
        kernel_shape=[2, 2],
        strides=[3, 3],
        pads=[1, 1, 1, 1],
    )
    model = one_graph([node], {"x": normal(1, 1, 5, 5)}, {}, (TensorProto.FLOAT, (1, 1, 3, 3)), opset=OPSET)
    with pytest.raises(tilewright.ModelError, match="begin in the padding"):
        tilewright.compile(model)


@pytest.mark.parametrize(
    "attributes, heads, mask",
    [
        ({}, (4, 4), {}),
        ({"is_causal": 1}, (4, 4), {}),
        ({"is_causal": 1, "scale": 0.3}, (6, 2), {}),
        ({}, (4, 2), {"mask": normal(37, 37)}),
    ],
    ids=["plain", "causal", "grouped", "masked"],
)
def test_attention_is_one_kernel_and_a_causal_mask_another(
    attributes: dict[str, float], heads: tuple[int, int], mask: dict[str, Array]
) -> None:
    """The definition makes that mask of indices and of what they are compared with."""
    own, shared = heads
    inputs = {"q": normal(2, own, 37, 16), "k": normal(2, shared, 37, 16), "v": normal(2, shared, 37, 16)}
    inputs |= mask
    program = run_beside_onnx(helper.make_node("Attention", list(inputs), ["y"], **attributes), inputs)
    assert len(program.metadata.report.kernels) == 1 + ("is_causal" in attributes)


def test_attention_of_merged_heads() -> None:
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], q_num_heads=4, kv_num_heads=4)
    run_beside_onnx(node, {name: normal(2, 19, 32) for name in "qkv"})


def test_rotary_embedding() -> None:
    angles = np.outer(np.arange(19), 0.5 ** np.arange(8))
    tables = {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    positions = np.random.default_rng(0).integers(0, 19, (2, 11))
    node = helper.make_node("RotaryEmbedding", ["x", "cos", "sin", "positions"], ["y"])
    run_beside_onnx(node, {"x": normal(2, 3, 11, 16), "positions": positions}, tables)


def test_rms_normalization() -> None:
    node = helper.make_node("RMSNormalization", ["x", "scale"], ["y"], axis=-1)
    run_beside_onnx(node, {"x": normal(5, 77)}, {"scale": normal(77)})


@pytest.mark.parametrize("size", [(2, 3, 5, 6), (2, 3, 3, 4, 5)], ids=["flat", "deep"])
def test_affine_grid(size: tuple[int, ...]) -> None:
    """Its definition has an If for the number of dims."""
    dims = len(size) - 2
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=1)
    run_beside_onnx(node, {"theta": normal(2, dims, dims + 1)}, {"size": np.array(size)})
