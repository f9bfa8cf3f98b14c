"""Quantised models whose scales and zero points are computed at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from one_graph import random_bytes
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from quantised_cases import Numbers, check_ours, model_of

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


Array = np.ndarray


def _reference(model: onnx.ModelProto, inputs: Numbers) -> Array:
    """Computes the same in numpy. ONNX Runtime's products of unsigned and signed bytes saturate in 16 bits on
    processors without VNNI."""
    return ReferenceEvaluator(model).run(None, dict(inputs))[0]


def _dynamic(op: str, attributes: dict[str, Any], weights: Array, weight_zero: Array) -> list[onnx.NodeProto]:
    """Builds the nodes as quantize_dynamic writes them."""
    return [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node(op, ["q", "w", "z", "zw"], ["sums"], **attributes),
        helper.make_node("Cast", ["sums"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "s"], ["y"]),
    ]


@pytest.mark.parametrize(
    ("low", "high"),
    [(-3, 3), (0.5, 3), (-0.1, 3), (-3, 0.1)],
    ids=["both", "positive", "nearly-positive", "nearly-negative"],
)
def test_convolutions_with_a_zero_point_at_run_time(low: float, high: float) -> None:
    """The program pads the image with a number that it computes."""
    rng = np.random.default_rng(12)
    x = rng.uniform(low, high, (1, 4, 9, 11)).astype(np.float32)
    w = random_bytes(rng, np.int8, 18, 4, 3, 3)
    model = model_of(
        _dynamic("ConvInteger", {"pads": [1, 1, 1, 1]}, w, np.asarray(0, np.int8)),
        {"x": x},
        {"w": w, "zw": np.asarray(0, np.int8)},
        (TensorProto.FLOAT, (1, 18, 9, 11)),
    )
    program = tilewright.compile(model, threads=1, tuning=False)
    check_ours(program)
    np.testing.assert_allclose(program(x)[0], _reference(model, {"x": x}), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(13, 70), (1, 70)], ids=str)
def test_products_with_scales_at_run_time(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(13)
    x = rng.standard_normal(shape).astype(np.float32)
    w, zeros = random_bytes(rng, np.int8, 70, 66), random_bytes(rng, np.int8, 66)
    model = model_of(
        _dynamic("MatMulInteger", {}, w, zeros),
        {"x": x},
        {"w": w, "zw": zeros},
        (TensorProto.FLOAT, (shape[0], 66)),
    )
    program = tilewright.compile(model, threads=1, tuning=False)
    check_ours(program)
    np.testing.assert_allclose(program(x)[0], _reference(model, {"x": x}), rtol=1e-6, atol=1e-5)
