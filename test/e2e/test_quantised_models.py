"""Models quantised as ONNX writes it, from floats to floats: to and from bytes, products, layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tilewright
from one_graph import random_bytes
from onnx import TensorProto, helper
from quantised_cases import ULP, Numbers, check_ours, kernels_of_bytes, model_of

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


Array = np.ndarray


def _onnx_runtime(model: onnx.ModelProto, inputs: Numbers) -> Array:
    """Runs the model node by node, as ONNX defines it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)[0]


def _quantised(x: Array, scale: Array, zero: Array) -> Array:
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero.astype(np.float64), info.min, info.max)


@pytest.mark.parametrize(
    "zero", [np.uint8(0), np.uint8(255), np.uint8(117), np.int8(-128), np.int8(127)], ids=repr
)
def test_quantising_rounds_to_even_and_cuts_off(zero: np.generic) -> None:
    """Inputs are ties in the middle of steps, numbers beyond the bounds, infinities, and a NaN, which gives the lower
    bound."""
    scale = np.float32(0.3)
    steps = (np.arange(-300, 301, dtype=np.float32) / 2) * scale
    x = np.concatenate([steps, np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0])])
    model = model_of(
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
    model = model_of(
        [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1)],
        {"q": q},
        {"s": scales, "z": zeros},
        (TensorProto.FLOAT, q.shape),
    )
    got = tilewright.compile(model, threads=1, tuning=False)(q)[0]
    differences = (q.astype(np.int32) - zeros[:, None].astype(np.int32)).astype(np.float32)
    np.testing.assert_array_equal(got, differences * scales[:, None])


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
        return model_of(self.nodes, self.inputs, self.constants, (TensorProto.FLOAT, self.exact.shape))

    def check(self, *, products: int = 1) -> None:
        program = tilewright.compile(self.model(), threads=1, tuning=False)
        check_ours(program, products)
        got = program(*self.inputs.values())[0]
        # The sum is rounded to f32, and so are two products with scales.
        np.testing.assert_allclose(got, self.exact, rtol=3.01 * ULP, atol=1e-30)


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
    assert not kernels_of_bytes(program)
    got = program(*products.inputs.values())[0]
    np.testing.assert_allclose(got, _onnx_runtime(products.model(), products.inputs), rtol=1e-5, atol=1e-4)


def test_explain_says_that_scales_came_after_the_sum() -> None:
    rng = np.random.default_rng(7)
    products = _weighted_products(rng, scale=0.02)
    program = tilewright.compile(products.model(), threads=1, tuning=False)
    assert "scales after a sum of integers" in program.explain()


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
    model = model_of(nodes, {"x": x}, constants, (TensorProto.FLOAT, (37, 130)))
    program = tilewright.compile(model, threads=1, tuning=False)
    check_ours(program, products=2)
    got = np.rint(program(x)[0] / scales[2]) + int(zeros[2])
    assert (got == 0).any()
    assert (got == 255).any()
    # A number next to a half in the first layer may move a result by a step or two.
    assert (np.abs(got - value) <= 2).all()
    assert (got != value).mean() < 0.01
