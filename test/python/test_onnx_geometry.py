"""Tests of models whose convolutions and pools have numbers that do not fit together: refused with op and numbers."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import pytest
import tilewright
from onnx import TensorProto, helper
from tilewright.errors import ModelError

from benchmarks.workloads.builder import Attribute, GraphBuilder


def model(
    op: str, image: Sequence[int], weight: Sequence[int] | None, attributes: dict[str, Attribute]
) -> onnx.ModelProto:
    """Builds a model of one node, named 'layer', whose result's shape is not declared."""
    g = GraphBuilder("geometry")
    operands = [g.input("x", image), *([] if weight is None else [g.weight(weight, fan_in=9)])]
    built = g.build()
    node = built.graph.node.add(op_type=op, input=operands, output=["y"], name="layer")
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    built.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    return built


_IMAGE = (1, 4, 8, 8)
_REFUSED: dict[str, tuple[str, Sequence[int], Sequence[int] | None, dict[str, Attribute], str]] = {
    "window larger than the padded image": (
        "Conv", (1, 4, 4, 4), (8, 4, 7, 7), {"pads": [1, 1, 1, 1]},
        "Conv with a window of 7 points along dim 2 of an image that has 6 with its pads",
    ),
    "dilated window larger than the image": (
        "Conv", (1, 4, 8, 6), (8, 4, 3, 4), {"dilations": [1, 2]},
        "a window of 7 points along dim 3 of an image that has 6 with its pads",
    ),
    "pool larger than the image": (
        "MaxPool", (1, 3, 4, 9), None, {"kernel_shape": [5, 5]}, "MaxPool with a window of 5 points along dim 2",
    ),
    "transposed convolution without a result": (
        "ConvTranspose", (1, 4, 2, 5), (4, 8, 2, 2), {"pads": [2, 2, 2, 2]},
        "ConvTranspose with pads that remove 4 of the 3 points of its result along dim 2",
    ),
    "filters that groups do not divide": (
        "Conv", _IMAGE, (6, 1, 3, 3), {"group": 4}, "Conv with 6 filters in 4 groups",
    ),
    "channels that groups do not fit": (
        "Conv", (1, 6, 8, 8), (8, 2, 3, 3), {"group": 4},
        "an image of 6 channels, and weights of 8x2x3x3 in 4 groups, which take 8",
    ),
    "transposed groups": (
        "ConvTranspose", (1, 3, 8, 8), (3, 4, 2, 2), {"group": 2}, "ConvTranspose with 3 channels in 2 groups",
    ),
    "other channels": (
        "Conv", (1, 5, 8, 8), (8, 4, 3, 3), {},
        "an image of 5 channels, and weights of 8x4x3x3 in 1 groups, which take 4",
    ),
    "no groups": ("Conv", _IMAGE, (8, 4, 3, 3), {"group": 0}, "Conv with 0 groups"),
    "another window": (
        "Conv", _IMAGE, (8, 4, 3, 3), {"kernel_shape": [5, 5]}, "kernel_shape [5, 5] and weights of 8x4x3x3",
    ),
    "no stride": ("Conv", _IMAGE, (8, 4, 3, 3), {"strides": [0, 1]}, "strides [0, 1], and none may be below 1"),
    "no dilation": ("Conv", _IMAGE, (8, 4, 3, 3), {"dilations": [1, 0]}, "dilations [1, 0]"),
    "negative pads": ("AveragePool", _IMAGE, None, {"kernel_shape": [2, 2], "pads": [-1, 0, 0, 0]}, "pads [-1, 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", _REFUSED)
def test_numbers_that_do_not_fit_are_refused(name: str) -> None:
    op, image, weight, attributes, message = _REFUSED[name]
    with pytest.raises(ModelError) as refused:
        tilewright.compile(model(op, image, weight, attributes))
    assert message in str(refused.value)
    assert "'layer'" in str(refused.value)


def test_a_window_as_large_as_the_padded_image_has_one_point() -> None:
    fits = model("Conv", (1, 4, 4, 4), (8, 4, 6, 6), {"pads": [1, 1, 1, 1]})
    program = tilewright.compile(fits)
    assert program.signature is not None
    assert program.signature.outputs[0].shape == (1, 8, 1, 1)


def test_a_transposed_convolution_may_keep_one_point() -> None:
    fits = model("ConvTranspose", (1, 4, 2, 2), (4, 8, 2, 2), {"pads": [1, 0, 1, 2], "strides": [1, 1]})
    program = tilewright.compile(fits)
    assert program.signature is not None
    assert program.signature.outputs[0].shape == (1, 8, 1, 1)


def test_lengths_that_are_not_known_are_not_judged() -> None:
    fits = model("MaxPool", (1, 4, 4, 4), None, {"kernel_shape": [5, 5]})
    fits.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    fits.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "width"
    tilewright.compile(fits)
