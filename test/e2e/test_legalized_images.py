"""Ops of images that rules replace, compiled: resizes, transposed convolutions, pads and pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tilewright
from legalized_cases import check, evaluated, model_of
from onnx import NodeProto, ValueInfoProto, helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]


Array = np.ndarray[Any, Any]


def _by_onnx_runtime(
    nodes: Sequence[NodeProto], inputs: Mapping[str, Array], constants: Mapping[str, Array]
) -> dict[str, Array]:
    """Returns what ONNX Runtime computes; outputs of all nodes are results."""
    names = [name for node in nodes for name in node.output]
    model = model_of(nodes, inputs, {}, constants)
    model.graph.output.extend(ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


_RESIZES: list[dict[str, Any]] = [
    {"mode": mode, "coordinate_transformation_mode": where}
    for mode in ("nearest", "linear", "cubic")
    for where in ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
] + [
    *({"mode": "nearest", "nearest_mode": how} for how in ("floor", "ceil", "round_prefer_ceil")),
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "antialias": 1, "cubic_coeff_a": -0.5},
    {"mode": "cubic", "exclude_outside": 1},
]


@pytest.mark.parametrize("scale", [0.61, 1.73, 2.0])
def test_resizes(scale: float) -> None:
    """Every mode, by a factor that shrinks and factors that enlarge, whole and not. None puts a position halfway
    between two elements, where ONNX Runtime and onnx's evaluator round differently."""
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 5)).astype(np.float32)
    constants = {"scales": np.array([1, 1, scale, 1.29], np.float32)}
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], [f"y{number}"], **attributes)
        for number, attributes in enumerate(_RESIZES)
    ]
    check(nodes, {"x": x}, evaluated(nodes, {"x": x}, constants), constants, rtol=2e-6)


def test_elements_repeated_by_whole_factors_are_only_moved() -> None:
    """Upsampling by whole factors is a broadcast, which kernels read in place, and computes no position."""
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 5)).astype(np.float32)
    constants = {"scales": np.array([1, 1, 2, 3], np.float32)}
    forms = [
        ("asymmetric", "floor"),
        ("half_pixel", "round_prefer_floor"),
        ("pytorch_half_pixel", "round_prefer_ceil"),
    ]
    for where, rounding in forms:
        attributes = {"coordinate_transformation_mode": where, "nearest_mode": rounding}
        nodes = [helper.make_node("Resize", ["x", "", "scales"], ["y0"], mode="nearest", **attributes)]
        expected = evaluated(nodes, {"x": x}, constants)
        (kernel,) = tilewright.compile(model_of(nodes, {"x": x}, expected, constants), threads=1).kernels
        assert kernel.name == "move_0"
        check(nodes, {"x": x}, expected, constants, rtol=0)


def test_the_nearest_element_is_found_in_f32() -> None:
    """3 / 0.6 is 5 in f32, and less than 5 for the f64 nearest to the f32 of 0.6."""
    x = np.random.default_rng(0).standard_normal((1, 3, 7, 7)).astype(np.float32)
    constants = {"scales": np.array([1, 1, 0.6, 0.6], np.float32)}
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["y0"], mode="nearest", **attributes)]
    check(nodes, {"x": x}, _by_onnx_runtime(nodes, {"x": x}, constants), constants, rtol=0)


def test_transposed_convolutions() -> None:
    """Groups, dilations, padding that differs between sides, and shapes of the result."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 8, 7, 9)).astype(np.float32)
    forms: list[tuple[int, tuple[int, int], dict[str, Any]]] = [
        (1, (3, 3), {"pads": [0, 1, 1, 0], "strides": [2, 2]}),
        (1, (3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        (1, (3, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 1]}),
        (1, (3, 3), {"output_shape": [15, 20], "strides": [2, 2]}),
        (2, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
        (8, (4, 4), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        (4, (3, 2), {"pads": [1, 0, 0, 1], "strides": [2, 3], "dilations": [2, 1], "output_padding": [1, 0]}),
    ]
    nodes, constants = [], {}
    for number, (group, kernel, attributes) in enumerate(forms):
        constants[f"w{number}"] = rng.standard_normal((8, 3, *kernel)).astype(np.float32)
        constants[f"b{number}"] = rng.standard_normal(3 * group).astype(np.float32)
        nodes.append(
            helper.make_node(
                "ConvTranspose", ["x", f"w{number}", f"b{number}"], [f"y{number}"], group=group, **attributes
            )
        )
    check(nodes, {"x": x}, _by_onnx_runtime(nodes, {"x": x}, constants), constants, rtol=1e-5)


def test_a_pad_in_front_of_a_transposed_convolution_stays_where_it_is() -> None:
    """Zeros around the image, also behind an Identity; another value, and pads that remove or differ."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    forms: list[dict[str, Any]] = [
        {"strides": [3, 2]},
        {"strides": [2, 3], "pads": [1, 1, 1, 1], "dilations": [2, 1]},
        {"strides": [2, 2], "pads": [0, 1, 1, 0]},
    ]
    constants = {
        "amounts": np.array([0, 0, 2, 0, 0, 0, -1, 3]),
        "nothing": np.float32(0),
        "one": np.float32(1),
        "w": rng.standard_normal((3, 2, 3, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Pad", ["x", "amounts", "nothing"], ["p0"]),
        helper.make_node("Identity", ["p0"], ["p1"]),
        helper.make_node("Pad", ["x", "amounts", "one"], ["p2"]),
    ]
    for number, attributes in enumerate(forms):
        nodes.append(helper.make_node("ConvTranspose", [f"p{number}", "w"], [f"y{number}"], **attributes))
    check(nodes, {"x": x}, _by_onnx_runtime(nodes, {"x": x}, constants), constants, rtol=1e-5)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads_that_differ_and_remove(mode: str) -> None:
    """What a negative amount removes is not repeated."""
    x = np.random.default_rng(0).standard_normal((3, 5, 7)).astype(np.float32)
    forms = [
        [0, 1, 2, 0, 2, 1],
        [2, 0, 3, 0, 2, 0],
        [0, -1, 2, 0, 1, -2],
        [0, -1, -2, 0, -1, -1],
        [1, 0, -1, 2, 3, 4],
    ]
    nodes, constants, expected = [], {}, {}
    for number, pads in enumerate(forms):
        before, after = pads[:3], pads[3:]
        kept = x[
            tuple(slice(max(0, -b), n - max(0, -a)) for b, n, a in zip(before, x.shape, after, strict=True))
        ]
        added = [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)]
        constants[f"p{number}"], expected[f"y{number}"] = np.array(pads), np.pad(kept, added, mode=mode)  # type: ignore[call-overload]
        nodes.append(helper.make_node("Pad", ["x", f"p{number}"], [f"y{number}"], mode=mode))
    check(nodes, {"x": x}, expected, constants)


def test_pools_whose_last_window_would_begin_in_the_padding() -> None:
    """Such windows do not exist. Other windows that reach beyond the padding count what is inside."""
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 9)).astype(np.float32)
    forms: list[dict[str, Any]] = [
        {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    ]
    nodes = [
        helper.make_node(op, ["x"], [f"{op}{number}"], ceil_mode=1, **attributes)
        for number, attributes in enumerate(forms)
        for op in ("MaxPool", "AveragePool")
    ]
    check(nodes, {"x": x}, _by_onnx_runtime(nodes, {"x": x}, {}), rtol=1e-6)
