"""Tests of ops that IREE's importer lacks or miscomputes, compared with ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import tilewright
from one_graph import Array, one_graph
from onnx import NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]

OPSET = 23
OPSET_OF_CRD = 28  # the first with SpaceToDepth in mode CRD


def run_beside_onnx(
    node: NodeProto, inputs: Mapping[str, Array], constants: Mapping[str, Array] | None = None
) -> tilewright.Program:
    """Compares the only result, and returns the compiled program."""
    constants = constants or {}
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, {**inputs, **constants})
    model = one_graph([node], inputs, constants, (TensorProto.FLOAT, expected.shape), opset=OPSET)
    program = tilewright.compile(model, threads=1)
    np.testing.assert_allclose(program(*inputs.values())[0], expected, rtol=1e-5, atol=1e-5)
    return program


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [(1,), (0, 2), None])
def test_a_logarithm_of_large_exponentials(axes: tuple[int, ...] | None, keepdims: int) -> None:
    """Exponentials from 89 on are infinite in f32. A row of -inf alone gives -inf."""
    x = normal(3, 5, 7) * 100
    x[1] = -np.inf
    given = {} if axes is None else {"axes": np.array(axes)}
    wide = x.astype(np.float64)
    largest = wide.max(axes, keepdims=True)
    shift = np.where(np.isinf(largest), 0, largest)
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.exp(wide - shift).sum(axes, keepdims=True))
    expected = logarithm + shift if keepdims else np.squeeze(logarithm + shift, axes)
    node = helper.make_node("ReduceLogSumExp", ["x", *given], ["y"], keepdims=keepdims)
    model = one_graph([node], {"x": x}, given, (TensorProto.FLOAT, expected.shape), opset=OPSET)
    np.testing.assert_allclose(tilewright.compile(model, threads=1)(x)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_norms_over_channels_of_dynamic_shape(size: int) -> None:
    """IREE 3.13 ends the process, or reads other numbers. ONNX's evaluator counts channels by the batch."""
    x = 4 * normal(6, 6, 5, 7)
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.3, beta=0.6, bias=1.5)
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, {"x": x})
    model = one_graph([node], {"x": x}, {}, (TensorProto.FLOAT, x.shape), opset=OPSET)
    for value in (*model.graph.input, *model.graph.output):
        for number in (0, 2):
            value.type.tensor_type.shape.dim[number].dim_param = f"side_{number}"
    np.testing.assert_allclose(tilewright.compile(model, threads=1)(x)[0], expected, rtol=1e-5)


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


@pytest.mark.parametrize("rows", [1, 2, 5, 16])
def test_determinants_with_pivots(rows: int) -> None:
    """Matrices have small integers, with pivots that are zero; some are singular, and some have nothing but zeros."""
    x = np.random.default_rng(rows).integers(-1, 2, (6, rows, rows)).astype(np.float32)
    x[0] = 0
    x[1:, 0, 0] = 0
    run_beside_onnx(helper.make_node("Det", ["x"], ["y"]), {"x": x})


def test_a_determinant_of_one_matrix() -> None:
    x = np.array([[0, 1], [2, 3]], np.float32)
    run_beside_onnx(helper.make_node("Det", ["x"], ["y"]), {"x": x})


def test_a_determinant_of_many_rows_is_refused() -> None:
    node = helper.make_node("Det", ["x"], ["y"], name="volume")
    model = one_graph([node], {"x": normal(17, 17)}, {}, (TensorProto.FLOAT, ()), opset=OPSET)
    with pytest.raises(tilewright.ModelError, match="'volume': Det of matrices of 17 rows"):
        tilewright.compile(model)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("points", [(), (7,), (2, 3)], ids=["flat", "row", "image"])
def test_weighted_losses(points: tuple[int, ...], op: str, reduction: str) -> None:
    labels = np.random.default_rng(1).integers(0, 5, (4, *points))
    weights = np.array([0.9, 0.7, 0.8, 1.1, 0.3], np.float32)
    node = helper.make_node(op, ["x", "labels", "w"], ["y"], reduction=reduction, ignore_index=2)
    run_beside_onnx(node, {"x": normal(4, 5, *points), "labels": labels, "w": weights})


@pytest.mark.parametrize("shape_of_scales", [(1,), (2, 4, 1)])
def test_quantised_batches(shape_of_scales: tuple[int, ...]) -> None:
    """This compares with numpy: no available evaluator supports scales for rows in batches."""
    rng = np.random.default_rng(3)
    left, right = rng.integers(-128, 128, (2, 4, 7), np.int8), rng.integers(-128, 128, (2, 7, 5), np.int8)
    steps = rng.uniform(0.01, 0.1, shape_of_scales).astype(np.float32)
    inputs = {
        "a": left,
        "a_scale": steps,
        "a_zero": np.full(steps.shape, 3, np.int8),
        "b": right,
        "b_scale": np.array([0.05], np.float32),
        "b_zero": np.array([-4], np.int8),
        "y_scale": np.array([0.7], np.float32),
        "y_zero": np.array([9], np.int8),
    }
    node = helper.make_node("QLinearMatMul", list(inputs), ["y"])
    model = one_graph([node], inputs, {}, (TensorProto.INT8, (2, 4, 5)), opset=OPSET)
    (y,) = tilewright.compile(model, threads=1)(*inputs.values())
    exact = (left.astype(int) - 3) @ (right.astype(int) + 4) * (steps.astype(float) * 0.05 / 0.7)
    expected = np.clip(np.rint(exact) + 9, -128, 127)
    assert np.abs(y - expected).max() <= 1  # f32 may round to the other side of a half


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, -1])
def test_norms_of_zeros(axis: int, p: int) -> None:
    x = normal(3, 5, 7)
    x[0, :, 0] = 0
    x[:, 2, 4] = 0
    x[1, 1] = 0
    node = helper.make_node("LpNormalization", ["x"], ["y"], axis=axis, p=p)
    model = one_graph([node], {"x": x}, {}, (TensorProto.FLOAT, x.shape), opset=OPSET)
    norm = np.linalg.norm(x.astype(np.float64), p, axis, keepdims=True)
    (y,) = tilewright.compile(model, threads=1)(x)
    np.testing.assert_allclose(y, x / np.where(norm == 0, 1, norm), rtol=1e-5)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE])
def test_constants_that_iree_finds(dtype: int) -> None:
    """This uses four processes: for such constants, IREE's results of Sign and Softplus depended on the contents of
    memory, and were wrong in some processes."""
    numbers = helper.tensor_dtype_to_np_dtype(dtype)
    x = np.arange(7).astype(numbers)
    c = np.full(7, -0.379, numbers)
    never = np.zeros(7, np.bool_)
    nodes = [
        helper.make_node("Where", ["never", "x", "c"], ["found"]),
        helper.make_node("Softplus", ["found"], ["softplus"]),
        helper.make_node("Sign", ["found"], ["sign"]),
        helper.make_node("Sub", ["softplus", "sign"], ["y"]),
    ]
    model = one_graph(nodes, {"x": x}, {"c": c, "never": never}, (dtype, (7,)), opset=OPSET)
    expected = np.log1p(np.exp(c.astype(np.float64))) + 1
    for _ in range(4):
        (y,) = tilewright.compile(model, threads=1)(x)
        np.testing.assert_allclose(y, expected, rtol=4 * np.finfo(numbers).eps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64])
def test_signs(dtype: type) -> None:
    x = np.array([-3, -1, -0.0, 0, 1, 7], dtype)
    model = one_graph(
        [helper.make_node("Sign", ["x"], ["y"])],
        {"x": x},
        {},
        (helper.np_dtype_to_tensor_dtype(x.dtype), x.shape),
        opset=OPSET,
    )
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(x)[0], np.sign(x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gelu_by_tanh(dtype: type) -> None:
    """The tolerance is a few roundings: with a constant of four digits the error would be 5e-5."""
    x = np.linspace(-4, 4, 301, dtype=np.float32).astype(dtype)
    node = helper.make_node("Gelu", ["x"], ["y"], approximate="tanh")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    program = tilewright.compile(one_graph([node], {"x": x}, {}, (kind, x.shape), opset=OPSET), threads=1)
    wide = x.astype(np.float64)
    expected = wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3))) / 2
    unit = np.finfo(dtype).eps
    np.testing.assert_allclose(program(x)[0].astype(np.float64), expected, rtol=unit, atol=2 * unit)


def test_softplus() -> None:
    """Inputs range from where the result equals the exponential to where it equals the operand."""
    x = np.linspace(-30, 30, 601, dtype=np.float32)
    (y,) = tilewright.compile(
        one_graph(
            [helper.make_node("Softplus", ["x"], ["y"])],
            {"x": x},
            {},
            (TensorProto.FLOAT, x.shape),
            opset=OPSET,
        ),
        threads=1,
    )(x)
    np.testing.assert_allclose(y, np.logaddexp(x.astype(np.float64), 0), rtol=1e-6)


def test_remainders_of_floats() -> None:
    """The function is IREE's own, which kernels must not call."""
    node = helper.make_node("Mod", ["x", "by"], ["y"], fmod=1)
    x = np.array([-4.3, 7.2, 5.0, 4.3, -7.2, 8.0], np.float32)
    run_beside_onnx(node, {"x": x, "by": np.array([2.1, -3.4, 8.0, -2.1, 3.4, 5.0], np.float32)})


def test_counts_inserted_into_zeros() -> None:
    """Loops insert numbers, one after the other, into a tensor that is a constant."""
    node = helper.make_node(
        "TfIdfVectorizer",
        ["x"],
        ["y"],
        mode="TF",
        min_gram_length=2,
        max_gram_length=2,
        max_skip_count=0,
        ngram_counts=[0, 4],
        ngram_indexes=[0, 1, 2, 3, 4, 5, 6],
        pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    )
    run_beside_onnx(node, {"x": np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], np.int32)})


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
def test_attention_is_one_kernel(
    attributes: dict[str, float], heads: tuple[int, int], mask: dict[str, Array]
) -> None:
    """A causal mask is computed from indices alone, at load. Whether a row of a mask has any key is worth a kernel of
    its own only on the oldest processors, which would find it again for every head."""
    own, shared = heads
    inputs = {"q": normal(2, own, 37, 16), "k": normal(2, shared, 37, 16), "v": normal(2, shared, 37, 16)}
    inputs |= mask
    program = run_beside_onnx(helper.make_node("Attention", list(inputs), ["y"], **attributes), inputs)
    is_old = program.metadata.target == "x86-64-v2"
    assert len(program.metadata.report.kernels) == (2 if mask and is_old else 1)


def test_attention_of_merged_heads() -> None:
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], q_num_heads=4, kv_num_heads=4)
    run_beside_onnx(node, {name: normal(2, 19, 32) for name in "qkv"})


def test_rotary_embedding() -> None:
    angles = np.outer(np.arange(19), 0.5 ** np.arange(8))
    tables = {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    positions = np.random.default_rng(0).integers(0, 19, (2, 11))
    node = helper.make_node("RotaryEmbedding", ["x", "cos", "sin", "positions"], ["y"])
    run_beside_onnx(node, {"x": normal(2, 3, 11, 16), "positions": positions}, tables)


@pytest.mark.parametrize("op, attributes", [("Swish", {}), ("Swish", {"alpha": 1.7}), ("SwiGLU", {})])
def test_activations_that_are_functions(op: str, attributes: dict[str, float]) -> None:
    """The cases include the default of an omitted attribute."""
    inputs = {name: normal(5, 12) for name in ("x", "gate")[: 1 + (op == "SwiGLU")]}
    node = helper.make_node(op, list(inputs), ["y"], **attributes)
    model = one_graph([node], inputs, {}, (TensorProto.FLOAT, (5, 12)), opset=28)
    sigmoid = 1 / (1 + np.exp(-attributes.get("alpha", 1.0) * inputs["x"].astype(np.float64)))
    expected = inputs["x"] * sigmoid * inputs.get("gate", 1)
    np.testing.assert_allclose(tilewright.compile(model, threads=1)(*inputs.values())[0], expected, rtol=1e-5)


def test_a_function_without_an_input_in_the_middle() -> None:
    """The convolution has a state and an input, but no bias."""
    inputs = {"x": normal(2, 3, 9), "w": normal(3, 1, 4), "": normal(1), "past": normal(2, 3, 3)}
    node = helper.make_node("CausalConvWithState", list(inputs), ["y", "next"])
    del inputs[""]
    model = one_graph([node], inputs, {}, (TensorProto.FLOAT, (2, 3, 9)), opset=28)
    padded = np.concatenate([inputs["past"], inputs["x"]], axis=2).astype(np.float64)
    expected = sum(inputs["w"][:, 0, i, None] * padded[:, :, i : i + 9] for i in range(4))
    np.testing.assert_allclose(
        tilewright.compile(model, threads=1)(*inputs.values())[0], expected, rtol=1e-5, atol=1e-5
    )


def test_rms_normalization() -> None:
    node = helper.make_node("RMSNormalization", ["x", "scale"], ["y"], axis=-1)
    run_beside_onnx(node, {"x": normal(5, 77)}, {"scale": normal(77)})


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


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_a_single_constant_update_is_scattered(shape: tuple[int, ...], reduction: str) -> None:
    """IREE takes the update for the index, or the index for the update, if both are constants of one element."""
    x, axis = normal(*shape), len(shape) - 1
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=axis, reduction=reduction)
    at = np.ones([1] * len(shape), np.int64)
    run_beside_onnx(node, {"x": x}, {"i": at, "u": np.full(at.shape, 1.25, np.float32)})


@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
@pytest.mark.parametrize("sizes", [(11,), (5, 4, 3)], ids=["sequence", "volume"])
def test_quantised_convolutions_of_other_than_images(sizes: tuple[int, ...], op: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (2, 3, *sizes)).astype(np.uint8)
    taps = [2] * len(sizes)
    constants = {"w": rng.integers(0, 256, (4, 3, *taps)).astype(np.uint8)}
    zeros = {"xz": np.array(7, np.uint8), "wz": np.array(130, np.uint8)}
    pads = [1] * len(sizes) + [0] * len(sizes)
    if op == "ConvInteger":
        node = helper.make_node(op, ["x", "w", "xz", "wz"], ["y"], pads=pads)
        kind = TensorProto.INT32
        constants |= zeros
    else:
        node = helper.make_node(op, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], pads=pads)
        kind = TensorProto.UINT8
        scales = {"xs": 0.25, "ws": 0.125, "ys": 32.0}
        constants |= zeros | {name: np.array(value, np.float32) for name, value in scales.items()}
        constants["yz"] = np.array(128, np.uint8)
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, {"x": x, **constants})
    model = one_graph([node], {"x": x}, constants, (kind, expected.shape), opset=OPSET)
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(x)[0], expected)
