"""Tests of every form of convolutions, pools and resizing in every type, in GPU kernels on the simulated device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from simulated_convolutions import Case, simulated
from simulated_products import DTYPES, TYPES, assert_near
from tilewright.records.signature import Array
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=8)


def _model(g: GraphBuilder, result: str, kind: int) -> onnx.ModelProto:
    """Returns the model of a result whose shape is inferred."""
    g.output(result, (), kind)
    model = g.build()
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model)


# Sizes are odd, so that every tile and every vector has a tail.
_FORMS = {
    "1x1 stride 2": Case(window=(1, 1), stride=2, channels=13, filters=27),
    "3x3": Case(pads=(1, 1, 1, 1), channels=17, filters=19, batch=2),
    "3x2 stride 2": Case(window=(3, 2), stride=2, pads=(0, 1, 2, 0), channels=9, filters=18),
    "dilated": Case(dilation=2, pads=(2, 2, 2, 2), channels=11, filters=13),
    "stem": Case(channels=3, window=(7, 7), image=(19, 23), stride=2, pads=(3, 3, 3, 3), filters=21),
    "groups": Case(channels=34, filters=51, groups=17, pads=(1, 1, 1, 1)),
    "groups of many channels": Case(channels=38, filters=54, groups=2, pads=(1, 1, 1, 1)),
    "depthwise": Case(channels=23, filters=23, groups=0, pads=(1, 1, 1, 1)),
    "depthwise, dilated, stride 2": Case(
        channels=7, filters=7, groups=0, stride=2, dilation=2, window=(3, 5)
    ),
    "line": Case(image=(37,), window=(3,), pads=(1, 1), channels=13, filters=27),
    "line, stride 2": Case(image=(41,), window=(5,), stride=2, pads=(2, 2), channels=21, filters=11),
    "line, depthwise": Case(image=(37,), window=(3,), pads=(1, 1), channels=13, filters=13, groups=0),
    "volume": Case(image=(5, 6, 7), window=(3, 3, 3), channels=5, filters=9, pads=(1,) * 6),
    "volume, stride 2": Case(image=(7, 5, 9), window=(2, 3, 1), channels=6, filters=7, stride=2),
    "transposed": Case(is_transposed=True, stride=2, window=(2, 2), channels=13, filters=9, image=(5, 6)),
    "transposed, overlapping": Case(
        is_transposed=True, stride=2, window=(3, 4), channels=9, filters=7, image=(5, 6), pads=(1, 1, 0, 1)
    ),
    "transposed line": Case(is_transposed=True, stride=3, window=(7,), channels=9, filters=7, image=(11,)),
    "transposed volume": Case(
        is_transposed=True, stride=2, window=(2, 3, 2), channels=5, filters=6, image=(3, 4, 5)
    ),
}


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("name", _FORMS)
def test_convolutions(name: str, element: str, tmp_path: Path) -> None:
    case = replace(_FORMS[name], element=element)
    model, inputs = case.model(), case.inputs()
    _, ran = simulated(model, inputs, tmp_path)
    assert_near(ran.outputs, model, inputs, element)


@pytest.mark.parametrize("zero", [np.array(117, np.uint8), np.array(-9, np.int8), np.array(0, np.int8)])
@pytest.mark.parametrize(
    ("channels", "filters", "groups", "window", "attributes"),
    [
        (17, 19, 1, (3, 3), {"pads": [1, 1, 1, 1]}),
        (13, 27, 1, (1, 1), {"strides": [2, 2]}),
        (9, 18, 1, (3, 2), {"strides": [2, 1], "dilations": [1, 2]}),
        (12, 20, 4, (3, 3), {"pads": [1, 0, 1, 0]}),
        (11, 11, 11, (3, 3), {"pads": [1, 1, 1, 1]}),
    ],
)
def test_bytes(
    channels: int,
    filters: int,
    groups: int,
    window: tuple[int, int],
    attributes: dict[str, list[int]],
    zero: Array,
    tmp_path: Path,
) -> None:
    """Pads are zero points, not zeros, and sums are exact."""
    image, weight = (1, channels, 9, 11), (filters, channels // groups, *window)
    g = GraphBuilder("bytes")
    x = g.input("x", image, helper.np_dtype_to_tensor_dtype(zero.dtype))
    w = g.input("w", weight, TensorProto.INT8)
    y = g.op("ConvInteger", x, w, g.constant(zero), group=groups, **attributes)
    model = _model(g, y, TensorProto.INT32)
    rng = np.random.default_rng(5)
    limits = np.iinfo(zero.dtype)
    inputs = [
        rng.integers(limits.min, limits.max + 1, image).astype(zero.dtype),
        rng.integers(-128, 128, weight).astype(np.int8),
    ]
    _, ran = simulated(model, inputs, tmp_path)
    assert ran.outputs is not None
    np.testing.assert_array_equal(ran.outputs[0], float64_reference(model, inputs)[0])


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("op", "image", "attributes"),
    [
        ("MaxPool", (37,), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
        ("MaxPool", (5, 6, 7), {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2], "ceil_mode": 1}),
        ("AveragePool", (37,), {"kernel_shape": [4], "strides": [3], "ceil_mode": 1}),
        ("AveragePool", (9, 11), {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}),
        ("AveragePool", (5, 6, 7), {"kernel_shape": [3, 2, 3], "pads": [1, 0, 1] * 2}),
        ("GlobalAveragePool", (37,), {}),
        ("GlobalMaxPool", (5, 6, 7), {}),
    ],
)  # fmt: skip
def test_pools(
    op: str, image: tuple[int, ...], attributes: dict[str, object], element: str, tmp_path: Path
) -> None:
    g = GraphBuilder("pool")
    x = g.input("x", (2, 5, *image), TYPES[element])
    model = _model(g, g.op(op, x, **attributes), TYPES[element])  # type: ignore[arg-type]
    inputs = [np.random.default_rng(3).standard_normal((2, 5, *image)).astype(DTYPES[element])]
    _, ran = simulated(model, inputs, tmp_path)
    assert_near(ran.outputs, model, inputs, element)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize(("mode", "size"), [("nearest", (17, 9)), ("linear", (17, 9)), ("cubic", (4, 23))])
def test_resizing(mode: str, size: tuple[int, int], element: str, tmp_path: Path) -> None:
    g = GraphBuilder("resize")
    x = g.input("x", (1, 3, 9, 11), TYPES[element])
    y = g.op("Resize", x, "", "", g.ints([1, 3, *size]), mode=mode)
    g.output(y, (1, 3, *size), TYPES[element])
    inputs = [np.random.default_rng(3).standard_normal((1, 3, 9, 11)).astype(DTYPES[element])]
    model = g.build()
    _, ran = simulated(model, inputs, tmp_path)
    assert_near(ran.outputs, model, inputs, element)
