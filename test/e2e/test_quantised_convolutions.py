"""Convolutions of quantised models: dequantised, of integers, and QLinearConv."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from one_graph import random_bytes
from onnx import TensorProto, helper
from quantised_cases import ULP, check_ours, model_of
from tilewright.reference.oracle import run_double_onnx, widen

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


Array = np.ndarray


def _assert_same_steps(got: Array, exact: Array, zero: Array) -> None:
    """Compares quantised results, given as numbers in steps; sums are rounded to f32, so values next to a half may
    round either way."""
    expected = np.clip(np.rint(exact) + int(zero), np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max)
    near_half = np.abs(np.abs(exact - np.trunc(exact)) - 0.5) < 1e-4
    assert (np.abs(got.astype(np.int64) - expected) <= near_half).all()


def _windows(image: Array, size: int, stride: int) -> Array:
    """Returns the windows of [batch, channels, lines, points] as [batch, lines, points, channels, size, size]."""
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), axis=(2, 3))
    return windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)


def _convolve(image: Array, zero: int, weights: Array, stride: int, pad: int) -> Array:
    """Computes an exact convolution; padding is the zero point."""
    padded = np.pad(image.astype(np.int64) - zero, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    return np.einsum(
        "nijckl,fckl->nfij", _windows(padded, weights.shape[-1], stride), weights.astype(np.int64)
    )


@pytest.mark.parametrize(("stride", "pad"), [(1, 1), (2, 1), (1, 0)])
@pytest.mark.parametrize("zero", [np.uint8(0), np.uint8(255), np.uint8(117), np.int8(-128)], ids=repr)
def test_dequantised_convolutions(zero: np.generic, stride: int, pad: int) -> None:
    rng = np.random.default_rng(9)
    x, w = random_bytes(rng, zero.dtype.type, 2, 5, 11, 13), random_bytes(rng, np.int8, 17, 5, 3, 3)
    scales = (rng.random(17) + 0.1).astype(np.float32)
    bias = rng.standard_normal(17).astype(np.float32)
    exact = _convolve(x, int(zero), w, stride, pad) * 0.25 * scales.astype(np.float64)[:, None, None]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=0),
        helper.make_node("Conv", ["xd", "wd", "bias"], ["y"], strides=[stride] * 2, pads=[pad] * 4),
    ]
    constants = {
        "sx": np.float32(0.25), "zx": zero, "w": w, "sw": scales, "zw": np.zeros(17, np.int8), "bias": bias
    }  # fmt: skip
    model = model_of(nodes, {"x": x}, constants, (TensorProto.FLOAT, exact.shape))
    program = tilewright.compile(model, threads=1, tuning=False)
    check_ours(program)
    got = program(x)[0]
    np.testing.assert_allclose(
        got, exact + bias[:, None, None], rtol=1e-6, atol=np.abs(exact).max() * 4 * ULP
    )


@pytest.mark.parametrize("weight_zero", [np.uint8(128), np.uint8(3)], ids=repr)
def test_convolutions_of_integers(weight_zero: np.generic) -> None:
    """If the weights' zero point does not merely change their sign, windows are summed as well."""
    rng = np.random.default_rng(10)
    x, w = random_bytes(rng, np.uint8, 1, 4, 9, 11), random_bytes(rng, np.uint8, 18, 4, 3, 3)
    exact = _convolve(x, 201, w.astype(np.int64) - int(weight_zero), 1, 1)
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[1, 1, 1, 1])
    constants = {"w": w, "zx": np.uint8(201), "zw": weight_zero}
    model = model_of([node], {"x": x}, constants, (TensorProto.INT32, exact.shape))
    program = tilewright.compile(model, threads=1, tuning=False)
    check_ours(program)
    np.testing.assert_array_equal(program(x)[0], exact)


@pytest.mark.parametrize(
    "pads", [{"pads": [0, 1, 2, 0]}, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}], ids=str
)
@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
def test_pads_may_differ_between_sides(op: str, pads: dict[str, Any]) -> None:
    """The image is padded with its zero point first; IREE refuses one of the ops, and crashes at the other."""
    rng = np.random.default_rng(12)
    x, w = random_bytes(rng, np.uint8, 1, 4, 9, 11), random_bytes(rng, np.int8, 6, 4, 2, 3)
    operands: dict[str, Any] = {"w": w, "zx": np.uint8(117), "zw": np.int8(0)}
    names = ["x", "w", "zx", "zw"]
    if op == "QLinearConv":
        operands |= {name: np.float32(0.25) for name in ("sx", "sw")} | {
            "sy": np.float32(64),
            "zy": np.uint8(90),
        }
        names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    shape = (1, 6, 10, 10) if "pads" in pads else (1, 6, 5, 6)
    model = model_of(
        [helper.make_node(op, names, ["y"], **pads)],
        {"x": x},
        operands,
        (TensorProto.INT32 if op == "ConvInteger" else TensorProto.UINT8, shape),
    )
    program = tilewright.compile(model, threads=1, tuning=False)
    check_ours(program)
    (exact,) = run_double_onnx(widen(model), [x])
    np.testing.assert_array_equal(program(x)[0], exact)


def test_a_window_of_one_position_is_shorter_than_its_sequence() -> None:
    rng = np.random.default_rng(13)
    x, w = random_bytes(rng, np.uint8, 3, 5, 3), random_bytes(rng, np.int8, 4, 5, 2)
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    operands: dict[str, Any] = {name: np.float32(0.25) for name in ("sx", "sw")}
    operands |= {"w": w, "zx": np.uint8(117), "zw": np.int8(0), "sy": np.float32(64), "zy": np.uint8(90)}
    model = model_of(
        [helper.make_node("QLinearConv", names, ["y"], strides=[3])],
        {"x": x},
        operands,
        (TensorProto.UINT8, (3, 4, 1)),
    )
    (exact,) = run_double_onnx(widen(model), [x])
    np.testing.assert_array_equal(tilewright.compile(model, threads=1, strict=True)(x)[0], exact)


def test_qlinear_convolution() -> None:
    rng = np.random.default_rng(11)
    x, w = random_bytes(rng, np.uint8, 1, 4, 9, 11), random_bytes(rng, np.int8, 18, 4, 3, 3)
    bias = rng.integers(-5000, 5000, 18).astype(np.int32)
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "bias"]
    constants = {
        "sx": np.float32(0.05), "zx": np.uint8(117), "w": w, "sw": np.float32(0.02), "zw": np.int8(0),
        "sy": np.float32(0.4), "zy": np.uint8(90), "bias": bias,
    }  # fmt: skip
    sums = _convolve(x, 117, w, 1, 1) + bias[:, None, None]
    model = model_of(
        [helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])],
        {"x": x},
        constants,
        (TensorProto.UINT8, sums.shape),
    )
    program = tilewright.compile(model, threads=1, tuning=False)
    check_ours(program)
    exact = sums * (float(np.float32(0.05)) * float(np.float32(0.02)) / float(np.float32(0.4)))
    _assert_same_steps(program(x)[0], exact, np.uint8(90))
