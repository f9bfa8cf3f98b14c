"""Ops of images that IREE's importer lacks or miscomputes: rearranged, sampled, pooled and padded."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from one_graph import one_graph
from onnx import TensorProto, helper
from spelled_out_cases import OPSET, normal, run_beside_onnx

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]


OPSET_OF_CRD = 28  # the first with SpaceToDepth in mode CRD


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    """There are three channels of two by two, a number that could hide a mix-up of channels and blocks."""
    node = helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode=mode)
    run_beside_onnx(node, {"x": normal(2, 12, 7, 9)})


def test_space_to_depth_by_channels() -> None:
    """This compares with a transposition, because ONNX's evaluator supports only blocks."""
    x = normal(2, 3, 4, 6)
    node = helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2, mode="CRD")
    model = one_graph([node], {"x": x}, {}, (TensorProto.FLOAT, (2, 12, 2, 3)), opset=OPSET_OF_CRD)
    expected = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(x)[0], expected)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("sides", [(3, 2), (1, 5), (3, 5, 4)])
def test_the_nearest_of_a_grid(sides: tuple[int, ...], padding: str, aligned: int) -> None:
    """Coordinates are tenths: many positions are halfway between two elements, and some are outside the image."""
    tenths = np.random.default_rng(0).integers(-12, 13, (2, *sides[1:], 11, len(sides)))
    node = helper.make_node(
        "GridSample", ["x", "grid"], ["y"], mode="nearest", padding_mode=padding, align_corners=aligned
    )
    run_beside_onnx(node, {"x": normal(2, 3, *sides), "grid": (tenths / 10).astype(np.float32)})


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


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_a_window_that_begins_in_the_padding_is_refused(op: str) -> None:
    """Older exporters count it in the shapes that they declare."""
    node = helper.make_node(
        op,
        ["x"],
        ["y"],
        ceil_mode=1,
        kernel_shape=[2, 2],
        strides=[3, 3],
        pads=[1, 1, 1, 1],
    )
    model = one_graph([node], {"x": normal(1, 1, 5, 5)}, {}, (TensorProto.FLOAT, (1, 1, 3, 3)), opset=OPSET)
    with pytest.raises(tilewright.ModelError, match="begin in the padding"):
        tilewright.compile(model)


@pytest.mark.parametrize("size", [(2, 3, 5, 6), (2, 3, 3, 4, 5)], ids=["flat", "deep"])
def test_affine_grid(size: tuple[int, ...]) -> None:
    """The definition has an If on the number of dims."""
    dims = len(size) - 2
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=1)
    run_beside_onnx(node, {"theta": normal(2, dims, dims + 1)}, {"size": np.array(size)})


@pytest.mark.parametrize(
    ("pads", "axes"), [([0, 2, 0, 3], None), ([1, 7, 2, 1], [1, -1]), ([-1, 4, 2, -3], [0, 2]), ([0, 0], [1])]
)
def test_a_pad_that_wraps(pads: list[int], axes: list[int] | None) -> None:
    """This compares with numpy's pad, dim by dim, after negative amounts have removed their part, as in ONNX
    Runtime."""
    shape = (3, 5) if axes is None else (3, 5, 7)
    x = normal(*shape)
    node = helper.make_node("Pad", ["x", "pads", "", "axes"] if axes else ["x", "pads"], ["y"], mode="wrap")
    constants = {"pads": np.array(pads, np.int64)} | ({"axes": np.array(axes, np.int64)} if axes else {})
    expected = x
    for axis, before, after in zip(
        axes or (0, 1), pads[: len(pads) // 2], pads[len(pads) // 2 :], strict=True
    ):
        kept = np.arange(max(0, -before), expected.shape[axis] + min(0, after))
        expected = expected.take(np.pad(kept, (max(0, before), max(0, after)), "wrap"), axis)
    model = one_graph([node], {"x": x}, constants, (TensorProto.FLOAT, expected.shape), opset=OPSET)
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(x)[0], expected)


def test_a_pad_that_wraps_a_dim_of_unknown_length_is_refused() -> None:
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode="wrap", name="pad_7")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "y")]
    pads = helper.make_tensor("pads", TensorProto.INT64, [2], [1, 2])
    graph = helper.make_graph([node], "pads", values[:1], values[1:], [pads])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(tilewright.ModelError, match=r"pad_7.*length is not known"):
        tilewright.compile(model)


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [2, 1, 2], "pads": [1, 0, 2, 0, 1, 1], "dilations": [2, 1, 1]},
        {"strides": [2, 2, 2], "auto_pad": "SAME_UPPER"},
    ],
    ids=["padded and dilated", "padded automatically"],
)
def test_volumes_convolved_by_single_channels(attributes: dict[str, list[int] | str]) -> None:
    node = helper.make_node("Conv", ["x", "w", "bias"], ["y"], group=6, **attributes)
    constants = {"w": normal(6, 1, 2, 3, 4), "bias": normal(6)}
    run_beside_onnx(node, {"x": normal(2, 6, 5, 7, 8)}, constants)
