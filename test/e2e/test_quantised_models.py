"""Tests of models quantised as ONNX writes it: quantised tensors around ops in f32, ops of integers, and scales
computed at run time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tilewright
from one_graph import one_graph, random_bytes
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

Array = np.ndarray
Numbers = dict[str, Array]
_model = functools.partial(one_graph, opset=19)
_ULP = 2.0**-24


def _onnx_runtime(model: onnx.ModelProto, inputs: Numbers) -> Array:
    """Runs the model node by node, as ONNX defines it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)[0]


def _reference(model: onnx.ModelProto, inputs: Numbers) -> Array:
    """Computes the same in numpy. ONNX Runtime's products of unsigned and signed bytes saturate in 16 bits on
    processors without VNNI."""
    return ReferenceEvaluator(model).run(None, dict(inputs))[0]


def _kernels_of_bytes(program: tilewright.Program) -> list[str]:
    names = [op.micro_kernel or "" for kernel in program.kernels for op in kernel.ops]
    return [name for name in names if name.startswith(("vpdpbusd", "pmaddwd", "amx_int8"))]


def _check_ours(program: tilewright.Program, products: int = 1) -> None:
    left = [op for op in program.metadata.report.left_to_iree if op.is_dispatch]
    assert not left, left
    assert len(_kernels_of_bytes(program)) == products, program.explain()


def _quantised(x: Array, scale: Array, zero: Array) -> Array:
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero.astype(np.float64), info.min, info.max)


# ---------------------------------------------------------------------------------------------- to and from bytes


@pytest.mark.parametrize(
    "zero", [np.uint8(0), np.uint8(255), np.uint8(117), np.int8(-128), np.int8(127)], ids=repr
)
def test_quantising_rounds_to_even_and_cuts_off(zero: np.generic) -> None:
    """Inputs are ties in the middle of steps, numbers beyond the bounds, infinities, and a NaN, which gives the lower
    bound."""
    scale = np.float32(0.3)
    steps = (np.arange(-300, 301, dtype=np.float32) / 2) * scale
    x = np.concatenate([steps, np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0])])
    model = _model(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])],
        {"x": x},
        {"s": scale, "z": zero},
        (helper.np_dtype_to_tensor_dtype(zero.dtype), x.shape),
    )
    got = tilewright.compile(model, threads=1, tuning=False)(x)[0]
    with np.errstate(over="ignore"):
        expected = _quantised(x / scale, np.float32(1), zero)  # the quotient is in f32, as in ONNX
    expected[np.isnan(x)] = np.iinfo(zero.dtype).min
    np.testing.assert_array_equal(got, expected.astype(zero.dtype))
    np.testing.assert_array_equal(got, _onnx_runtime(model, {"x": x}))


def test_dequantising_by_channel() -> None:
    rng = np.random.default_rng(1)
    q, zeros = random_bytes(rng, np.uint8, 5, 7, 3), random_bytes(rng, np.uint8, 7)
    scales = rng.random(7).astype(np.float32)
    model = _model(
        [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1)],
        {"q": q},
        {"s": scales, "z": zeros},
        (TensorProto.FLOAT, q.shape),
    )
    got = tilewright.compile(model, threads=1, tuning=False)(q)[0]
    differences = (q.astype(np.int32) - zeros[:, None].astype(np.int32)).astype(np.float32)
    np.testing.assert_array_equal(got, differences * scales[:, None])


# ------------------------------------------------------------------------------------------------------- products


class _Products:
    """A matmul of two quantised tensors, with its result in float64."""

    def __init__(
        self,
        rows: Array,
        weights: Array,
        row_zero: np.generic,
        weight_zero: Array,
        weight_scale: Array,
        *,
        is_weight: bool = True,
    ) -> None:
        self.row_scale = np.float32(0.03)
        self.inputs = {"q": rows} | ({} if is_weight else {"b": weights})
        self.constants = {"sq": self.row_scale, "zq": row_zero, "sb": weight_scale, "zb": weight_zero}
        if is_weight:
            self.constants["b"] = weights
        self.nodes = [
            helper.make_node("DequantizeLinear", ["q", "sq", "zq"], ["x"]),
            helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["w"], axis=weights.ndim - 1),
            helper.make_node("MatMul", ["x", "w"], ["y"]),
        ]
        left = rows.astype(np.int64) - int(row_zero)
        right = weights.astype(np.int64) - weight_zero.astype(np.int64)
        self.exact = (left @ right) * float(self.row_scale) * weight_scale.astype(np.float64)

    def model(self) -> onnx.ModelProto:
        return _model(self.nodes, self.inputs, self.constants, (TensorProto.FLOAT, self.exact.shape))

    def check(self, *, products: int = 1) -> None:
        program = tilewright.compile(self.model(), threads=1, tuning=False)
        _check_ours(program, products)
        got = program(*self.inputs.values())[0]
        # The sum is rounded to f32, and so are two products with scales.
        np.testing.assert_allclose(got, self.exact, rtol=3.01 * _ULP, atol=1e-30)


def _weighted_products(rng: np.random.Generator, *, scale: float) -> _Products:
    return _Products(
        random_bytes(rng, np.uint8, 9, 70),
        random_bytes(rng, np.int8, 70, 33),
        np.uint8(3),
        np.asarray(0, np.int8),
        np.asarray(scale, np.float32),
    )


@pytest.mark.parametrize("weight", [np.uint8, np.int8])
@pytest.mark.parametrize("row", [np.uint8, np.int8])
@pytest.mark.parametrize("is_weight", [True, False], ids=["weight", "input"])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 67, 65), (7, 3, 17), (131, 129, 96)])
def test_dequantised_products_are_exact_sums(
    row: type, weight: type, rows: int, depth: int, columns: int, *, is_weight: bool
) -> None:
    """Zero points are at both ends of their types, where corrections are largest."""
    rng = np.random.default_rng(2)
    left, right = random_bytes(rng, row, rows, depth), random_bytes(rng, weight, depth, columns)
    ends = (row(np.iinfo(row).max), np.asarray(np.iinfo(weight).min, weight))
    _Products(left, right, *ends, np.asarray(0.02, np.float32), is_weight=is_weight).check()


@pytest.mark.parametrize("rows", [(2, 9, 21), (3, 2, 9, 21), (21,)], ids=str)
def test_batches_of_dequantised_products(rows: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    left, right = random_bytes(rng, np.uint8, *rows), random_bytes(rng, np.int8, 21, 70)
    _Products(left, right, np.uint8(7), np.asarray(-3, np.int8), np.asarray(0.02, np.float32)).check()


def test_a_scale_and_a_zero_point_for_each_column() -> None:
    rng = np.random.default_rng(4)
    left, right, zeros = (random_bytes(rng, np.uint8, *shape) for shape in ((13, 70), (70, 33), (33,)))
    scales = (rng.random(33) + 0.1).astype(np.float32)
    _Products(left, right, np.uint8(255), zeros, scales).check()


def test_scales_whose_product_is_too_small_for_f32() -> None:
    """1e-42 is subnormal, but thousands times 1e-21, times 1e-21 again, are not always."""
    rng = np.random.default_rng(5)
    products = _weighted_products(rng, scale=1e-21)
    products.exact *= 1e-21 / float(products.row_scale)
    products.constants["sq"] = np.float32(1e-21)
    program = tilewright.compile(products.model(), threads=1, tuning=False)
    got = program(*products.inputs.values())[0]
    normal = np.abs(products.exact) > 2.0**-126
    assert normal.sum() < normal.size
    np.testing.assert_allclose(got, products.exact, rtol=1e-6, atol=2.0**-126)


def test_strict_numerics_round_each_factor() -> None:
    rng = np.random.default_rng(6)
    products = _weighted_products(rng, scale=0.02)
    program = tilewright.compile(products.model(), threads=1, tuning=False, numerics="strict")
    assert not _kernels_of_bytes(program)
    got = program(*products.inputs.values())[0]
    np.testing.assert_allclose(got, _onnx_runtime(products.model(), products.inputs), rtol=1e-5, atol=1e-4)


def test_explain_says_that_scales_came_after_the_sum() -> None:
    rng = np.random.default_rng(7)
    products = _weighted_products(rng, scale=0.02)
    program = tilewright.compile(products.model(), threads=1, tuning=False)
    assert "scales after a sum of integers" in program.explain()


def _assert_same_steps(got: Array, exact: Array, zero: Array) -> None:
    """Compares quantised results, given as numbers in steps; sums are rounded to f32, so values next to a half may
    round either way."""
    expected = np.clip(np.rint(exact) + int(zero), np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max)
    near_half = np.abs(np.abs(exact - np.trunc(exact)) - 0.5) < 1e-4
    assert (np.abs(got.astype(np.int64) - expected) <= near_half).all()


@pytest.mark.parametrize("act", ["Relu", None])
def test_layers_of_bytes_from_floats_to_floats(act: str | None) -> None:
    """quantize_static writes two Gemms like this: a bias of i32, columns with scales, results that saturate."""
    rng = np.random.default_rng(8)
    x = (rng.standard_normal((37, 70)) * 3).astype(np.float32)
    sizes, zeros = (70, 66, 130), [np.uint8(128), np.uint8(0 if act else 100), np.uint8(131)]
    scales = [np.float32(0.02), np.float32(0.05), np.float32(0.04)]
    constants: dict[str, Any] = {}
    nodes = []
    value = _quantised(x, np.asarray(scales[0]), zeros[0])
    for i, (scale, zero) in enumerate(zip(scales, zeros, strict=True)):
        constants |= {f"s{i}": scale, f"z{i}": zero}
        source = "x" if i == 0 else f"g{i - 1}"
        nodes.append(helper.make_node("QuantizeLinear", [source, f"s{i}", f"z{i}"], [f"q{i}"]))
        nodes.append(
            helper.make_node("DequantizeLinear", [f"q{i}", f"s{i}", f"z{i}"], ["y" if i == 2 else f"d{i}"])
        )
        if i == 2:
            break
        w = random_bytes(rng, np.int8, *sizes[i : i + 2])
        sw = (rng.random(sizes[i + 1]) * 0.01 + 0.001).astype(np.float32)
        bias = rng.integers(-4000, 4000, sizes[i + 1]).astype(np.int32)
        constants |= {f"w{i}": w, f"sw{i}": sw, f"zw{i}": np.zeros_like(sw, np.int8)}
        constants |= {f"b{i}": bias, f"sb{i}": sw * scale, f"zb{i}": np.zeros_like(bias)}
        nodes.append(helper.make_node("DequantizeLinear", [f"w{i}", f"sw{i}", f"zw{i}"], [f"wd{i}"], axis=1))
        nodes.append(helper.make_node("DequantizeLinear", [f"b{i}", f"sb{i}", f"zb{i}"], [f"bd{i}"], axis=0))
        out = f"g{i}" if act is None or i else f"p{i}"
        nodes.append(helper.make_node("Gemm", [f"d{i}", f"wd{i}", f"bd{i}"], [out]))
        if out != f"g{i}":
            nodes.append(helper.make_node(act, [out], [f"g{i}"]))
        real = (value - int(zero)) @ w.astype(np.float64) + bias
        real = real * float(scale) * sw.astype(np.float64)
        real = np.maximum(real, 0) if act and i == 0 else real
        value = _quantised(real, np.asarray(scales[i + 1]), zeros[i + 1])
    model = _model(nodes, {"x": x}, constants, (TensorProto.FLOAT, (37, 130)))
    program = tilewright.compile(model, threads=1, tuning=False)
    _check_ours(program, products=2)
    got = np.rint(program(x)[0] / scales[2]) + int(zeros[2])
    assert (got == 0).any()
    assert (got == 255).any()
    # A number next to a half in the first layer may move a result by a step or two.
    assert (np.abs(got - value) <= 2).all()
    assert (got != value).mean() < 0.01


# --------------------------------------------------------------------------------------------------- convolutions


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
    model = _model(nodes, {"x": x}, constants, (TensorProto.FLOAT, exact.shape))
    program = tilewright.compile(model, threads=1, tuning=False)
    _check_ours(program)
    got = program(x)[0]
    np.testing.assert_allclose(
        got, exact + bias[:, None, None], rtol=1e-6, atol=np.abs(exact).max() * 4 * _ULP
    )


@pytest.mark.parametrize("weight_zero", [np.uint8(128), np.uint8(3)], ids=repr)
def test_convolutions_of_integers(weight_zero: np.generic) -> None:
    """If the weights' zero point does not merely change their sign, windows are summed as well."""
    rng = np.random.default_rng(10)
    x, w = random_bytes(rng, np.uint8, 1, 4, 9, 11), random_bytes(rng, np.uint8, 18, 4, 3, 3)
    exact = _convolve(x, 201, w.astype(np.int64) - int(weight_zero), 1, 1)
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[1, 1, 1, 1])
    constants = {"w": w, "zx": np.uint8(201), "zw": weight_zero}
    model = _model([node], {"x": x}, constants, (TensorProto.INT32, exact.shape))
    program = tilewright.compile(model, threads=1, tuning=False)
    _check_ours(program)
    np.testing.assert_array_equal(program(x)[0], exact)


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
    model = _model(
        [helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])],
        {"x": x},
        constants,
        (TensorProto.UINT8, sums.shape),
    )
    program = tilewright.compile(model, threads=1, tuning=False)
    _check_ours(program)
    exact = sums * (float(np.float32(0.05)) * float(np.float32(0.02)) / float(np.float32(0.4)))
    _assert_same_steps(program(x)[0], exact, np.uint8(90))


# ---------------------------------------------------------------------------------------------- scales at run time


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
    model = _model(
        _dynamic("ConvInteger", {"pads": [1, 1, 1, 1]}, w, np.asarray(0, np.int8)),
        {"x": x},
        {"w": w, "zw": np.asarray(0, np.int8)},
        (TensorProto.FLOAT, (1, 18, 9, 11)),
    )
    program = tilewright.compile(model, threads=1, tuning=False)
    _check_ours(program)
    np.testing.assert_allclose(program(x)[0], _reference(model, {"x": x}), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(13, 70), (1, 70)], ids=str)
def test_products_with_scales_at_run_time(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(13)
    x = rng.standard_normal(shape).astype(np.float32)
    w, zeros = random_bytes(rng, np.int8, 70, 66), random_bytes(rng, np.int8, 66)
    model = _model(
        _dynamic("MatMulInteger", {}, w, zeros),
        {"x": x},
        {"w": w, "zw": zeros},
        (TensorProto.FLOAT, (shape[0], 66)),
    )
    program = tilewright.compile(model, threads=1, tuning=False)
    _check_ours(program)
    np.testing.assert_allclose(program(x)[0], _reference(model, {"x": x}), rtol=1e-6, atol=1e-5)
