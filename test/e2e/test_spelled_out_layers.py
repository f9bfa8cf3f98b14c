"""Layers that ONNX defines as functions: attention, normalizations, activations."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from one_graph import Array, one_graph
from onnx import TensorProto, helper
from spelled_out_cases import OPSET, normal, run_beside_onnx

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]


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
