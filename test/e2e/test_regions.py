"""Tests of ops on regions of images, compared with ONNX's own evaluator."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from one_graph import Array, one_graph
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]

OPSET = 22


def _normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("ratio", "scale"), [(1, 1.0), (2, 0.5)])
def test_regions_are_aligned(mode: str, transformation: str, ratio: int, scale: float) -> None:
    """Regions reach beyond the image on every side, one is inside an element, and one has no size."""
    x = _normal(2, 3, 7, 9)
    regions = np.array(
        [[1, 1, 6, 5], [-4, -3, 3, 2], [5, 3, 14, 12], [2.2, 2.3, 2.4, 2.6], [3, 3, 3, 3]], np.float32
    )
    batches = np.array([0, 1, 1, 0, 1])
    node = helper.make_node(
        "RoiAlign", ["x", "rois", "batches"], ["y"], mode=mode, sampling_ratio=ratio, spatial_scale=scale,
        output_height=3, output_width=2, coordinate_transformation_mode=transformation,
    )  # fmt: skip
    inputs = {"x": x, "rois": regions, "batches": batches}
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, inputs)
    model = one_graph([node], inputs, {}, (TensorProto.FLOAT, expected.shape), opset=OPSET)
    (y,) = tilewright.compile(model, threads=1)(*inputs.values())
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_regions_with_samples_by_their_size_are_refused() -> None:
    node = helper.make_node("RoiAlign", ["x", "rois", "batches"], ["y"], name="roi_3")
    inputs = {"x": _normal(1, 2, 4, 4), "rois": _normal(2, 4), "batches": np.zeros(2, np.int64)}
    model = one_graph([node], inputs, {}, (TensorProto.FLOAT, (2, 2, 1, 1)), opset=OPSET)
    with pytest.raises(tilewright.ModelError, match=r"roi_3.*sampling_ratio"):
        tilewright.compile(model)


@pytest.mark.parametrize(
    ("group", "offset_group", "strides", "dilations", "pads"),
    [
        (1, 1, [1, 1], [1, 1], [0, 0, 0, 0]),
        (2, 1, [2, 1], [1, 2], [1, 0, 1, 0]),
        (1, 2, [1, 2], [1, 1], [0, 1, 0, 1]),
    ],
)
@pytest.mark.parametrize("optional", [(), ("b", "mask")], ids=["plain", "bias and mask"])
def test_convolutions_with_offsets(
    optional: tuple[str, ...],
    group: int,
    offset_group: int,
    strides: list[int],
    dilations: list[int],
    pads: list[int],
) -> None:
    """Offsets are large enough that many elements are outside the image."""
    sizes, kernel = (6, 7), (3, 2)
    counts = [
        (n + pads[i] + pads[i + 2] - dilations[i] * (k - 1) - 1) // strides[i] + 1
        for i, (n, k) in enumerate(zip(sizes, kernel, strict=True))
    ]
    taps = offset_group * kernel[0] * kernel[1]
    inputs = {
        "x": _normal(2, 4, *sizes),
        "w": _normal(6, 4 // group, *kernel),
        "offset": 2 * _normal(2, 2 * taps, *counts),
    }
    more = {"b": _normal(6), "mask": np.abs(_normal(2, taps, *counts))}
    inputs |= {name: more[name] for name in optional}
    node = helper.make_node(
        "DeformConv", list(inputs), ["y"], group=group, offset_group=offset_group, strides=strides,
        dilations=dilations, pads=pads, kernel_shape=kernel,
    )  # fmt: skip
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, inputs)
    model = one_graph([node], inputs, {}, (TensorProto.FLOAT, expected.shape), opset=OPSET)
    (y,) = tilewright.compile(model, threads=1)(*inputs.values())
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_centred", [0, 1])
@pytest.mark.parametrize(
    ("most", "overlap", "least"), [(3, 0.3, None), (20, 0.5, 0.4), (2, 0.0, 0.1), (0, 0.5, 0.1)]
)
def test_overlapping_boxes_are_suppressed(
    most: int, overlap: float, least: float | None, is_centred: int
) -> None:
    rng = np.random.default_rng(7)
    corners = rng.uniform(0, 10, (2, 12, 2))
    boxes = np.concatenate([corners, rng.uniform(1, 5, (2, 12, 2)) + (0 if is_centred else corners)], axis=2)
    boxes[0, 3] = boxes[0, 4]
    if not is_centred:
        boxes[1, 5] = boxes[1, 5, [2, 3, 0, 1]]  # the corners may come in either order
    inputs = {
        "boxes": boxes.astype(np.float32),
        "scores": rng.uniform(0, 1, (2, 3, 12)).astype(np.float32),
    }
    constants = {"most": np.array([most], np.int64), "overlap": np.array([overlap], np.float32)}
    if least is not None:
        constants["least"] = np.array([least], np.float32)
    node = helper.make_node("NonMaxSuppression", [*inputs, *constants], ["y"], center_point_box=is_centred)
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, {**inputs, **constants})
    model = one_graph([node], inputs, constants, (TensorProto.INT64, ("selected", 3)), opset=OPSET)
    (y,) = tilewright.compile(model, threads=1)(*inputs.values())
    np.testing.assert_array_equal(y, expected.reshape(-1, 3))
