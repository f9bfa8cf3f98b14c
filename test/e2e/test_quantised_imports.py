"""Tests of quantised ops that IREE's importer misreads or lacks: zero points for rows, scales for channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from one_graph import one_graph, random_bytes
from onnx import TensorProto, helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]

Array = np.ndarray


@pytest.mark.parametrize("with_columns", [True, False], ids=["rows-and-columns", "rows"])
@pytest.mark.parametrize(
    ("shape", "zero_shape"),
    [((13, 21), (13,)), ((12, 12), (12,)), ((12, 12), (12, 1)), ((2, 5, 21), (2, 5, 1))],
    ids=str,
)
@pytest.mark.parametrize("left", [np.uint8, np.int8])
def test_zero_points_of_rows(
    left: type, shape: tuple[int, ...], zero_shape: tuple[int, ...], *, with_columns: bool
) -> None:
    """For a square operand, zero points of rows could be mistaken for those of columns without an error."""
    rng = np.random.default_rng(1)
    a, b = random_bytes(rng, left, *shape), random_bytes(rng, np.int8, shape[-1], 33)
    rows, columns = random_bytes(rng, left, *zero_shape), random_bytes(rng, np.int8, 33)
    names = ["a", "b", "za", "zb"] if with_columns else ["a", "b", "za"]
    constants = {"b": b, "za": rows} | ({"zb": columns} if with_columns else {})
    model = one_graph(
        [helper.make_node("MatMulInteger", names, ["y"])],
        {"a": a},
        constants,
        (TensorProto.INT32, (*shape[:-1], 33)),
    )
    each_row = rows.reshape(-1, 1) if rows.ndim == 1 else rows
    right = b.astype(np.int64) - (columns if with_columns else 0)
    expected = (a.astype(np.int64) - each_row) @ right
    program = tilewright.compile(model, threads=1, tuning=False)
    np.testing.assert_array_equal(program(a)[0], expected)
    assert any(op.micro_kernel for kernel in program.kernels for op in kernel.ops)


@pytest.mark.parametrize("quantises", [True, False], ids=["bytes", "floats"])
@pytest.mark.parametrize(("transposes_a", "transposes_b"), [(0, 0), (1, 1)])
@pytest.mark.parametrize("has_one_scale", [True, False], ids=["one-scale", "scales-of-columns"])
def test_qgemm(transposes_a: int, transposes_b: int, *, quantises: bool, has_one_scale: bool) -> None:
    """This is ONNX Runtime's own op: the bias has the scale of the sums, and `alpha` scales both."""
    rng = np.random.default_rng(5)
    a, b = random_bytes(rng, np.uint8, 13, 21), random_bytes(rng, np.int8, 21, 33)
    scales = (rng.random(33) * 0.02 + 0.001).astype(np.float32)
    zeros = random_bytes(rng, np.int8, 33)
    if has_one_scale:
        scales, zeros = scales[:1].reshape(()), zeros[:1].reshape(())
    bias = rng.integers(-500, 500, 33).astype(np.int32)
    constants = {
        "sa": np.float32(0.03), "za": np.uint8(5), "b": b.T if transposes_b else b, "sb": scales, "zb": zeros,
        "bias": bias, "sy": np.float32(0.5), "zy": np.uint8(11),
    }  # fmt: skip
    names = ["a", "sa", "za", "b", "sb", "zb", "bias", "sy", "zy"]
    given = np.ascontiguousarray(a.T if transposes_a else a)
    node = helper.make_node(
        "QGemm",
        names if quantises else names[:7],
        ["y"],
        domain="com.microsoft",
        alpha=1.5,
        transA=transposes_a,
        transB=transposes_b,
    )
    kind = TensorProto.UINT8 if quantises else TensorProto.FLOAT
    model = one_graph([node], {"a": given}, constants, (kind, (13, 33)))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    sums = (a.astype(np.int64) - 5) @ (b.astype(np.int64) - zeros) + bias
    exact = sums * 1.5 * float(np.float32(0.03)) * scales.astype(np.float64)
    got = tilewright.compile(model, threads=1, tuning=False)(given)[0].astype(np.float64)
    if not quantises:
        np.testing.assert_allclose(got, exact, rtol=1e-6)
        return
    expected = np.clip(np.rint(exact / 0.5) + 11, 0, 255)
    near_half = np.abs(np.abs(exact / 0.5 - np.trunc(exact / 0.5)) - 0.5) < 1e-3
    assert (np.abs(got - expected) <= near_half).all()


def _convolve(image: Array, weights: Array, group: int) -> Array:
    """Computes exact sums of 3 x 3 windows, in an image with a border of zeros."""
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    parts = zip(np.split(windows, group, axis=1), np.split(weights, group), strict=True)
    return np.concatenate([np.einsum("ncijkl,fckl->nfij", *part) for part in parts], axis=1)


@pytest.mark.parametrize(
    ("zeros", "has_one_scale"),
    [
        (np.zeros(18, np.int8), False),
        (np.int8(0), False),
        (np.int8(-3), False),
        (np.arange(-9, 9, dtype=np.int8), False),
        (np.arange(-9, 9, dtype=np.int8), True),
    ],
    ids=["each", "none", "one", "various", "various-one-scale"],
)
@pytest.mark.parametrize("group", [1, 2])
def test_scales_of_channels(group: int, zeros: Array, *, has_one_scale: bool) -> None:
    rng = np.random.default_rng(2)
    x, w = random_bytes(rng, np.uint8, 1, 4, 9, 11), random_bytes(rng, np.int8, 18, 4 // group, 3, 3)
    scales = (rng.random(18) * 0.02 + 0.001).astype(np.float32)
    if has_one_scale:
        scales[:] = scales[0]
    bias = rng.integers(-500, 500, 18).astype(np.int32)
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "bias"]
    constants = {
        "sx": np.float32(0.05), "zx": np.uint8(117), "w": w, "sw": scales[0] if has_one_scale else scales, "zw": zeros,
        "sy": np.float32(0.4), "zy": np.uint8(90), "bias": bias,
    }  # fmt: skip
    sums = _convolve(
        x.astype(np.int64) - 117, w.astype(np.int64) - np.broadcast_to(zeros, 18)[:, None, None, None], group
    )
    model = one_graph(
        [helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1], group=group)],
        {"x": x},
        constants,
        (TensorProto.UINT8, sums.shape),
    )
    steps = float(np.float32(0.05)) * scales.astype(np.float64) / float(np.float32(0.4))
    exact = (sums + bias[:, None, None]) * steps[:, None, None]
    expected = np.clip(np.rint(exact) + 90, 0, 255)
    got = tilewright.compile(model, threads=1, tuning=False)(x)[0].astype(np.int64)
    # The sums are in f32, so values next to a half may round either way.
    near_half = np.abs(np.abs(exact - np.trunc(exact)) - 0.5) < 1e-3
    assert (np.abs(got - expected) <= near_half).all()


def _in_branch(node: onnx.NodeProto, constants: dict[str, Any], inputs: dict[str, Array], output: Any) -> Any:
    """Builds a model whose only If computes the node, with Constants of its branch as operands."""
    held = [
        helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(value)))
        for name, value in constants.items()
    ]
    result = helper.make_tensor_value_info("y", *output)
    branch = helper.make_graph([*held, node], "branch", [], [result])
    other = helper.make_graph([*held, node], "other", [], [result])
    choose = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=other)
    graph = helper.make_graph(
        [choose],
        "g",
        [helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
        + [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in inputs.items()
        ],
        [helper.make_tensor_value_info("z", *output)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_zero_points_of_rows_in_a_branch() -> None:
    rng = np.random.default_rng(3)
    a, b, rows = (
        random_bytes(rng, np.uint8, 12, 12),
        random_bytes(rng, np.int8, 12, 33),
        random_bytes(rng, np.uint8, 12),
    )
    model = _in_branch(
        helper.make_node("MatMulInteger", ["a", "b", "za"], ["y"]),
        {"b": b, "za": rows},
        {"a": a},
        (TensorProto.INT32, (12, 33)),
    )
    (got,) = tilewright.compile(model, threads=1)(np.array(True), a)
    np.testing.assert_array_equal(
        got, (a.astype(np.int32) - rows[:, None].astype(np.int32)) @ b.astype(np.int32)
    )


@pytest.mark.parametrize("version", [3, 8])
def test_models_whose_initializers_are_inputs(version: int) -> None:
    """Before version 4 of the format, every initializer was an input."""
    rng = np.random.default_rng(4)
    a, b, rows = (
        random_bytes(rng, np.uint8, 12, 12),
        random_bytes(rng, np.int8, 12, 33),
        random_bytes(rng, np.uint8, 12),
    )
    model = one_graph(
        [helper.make_node("MatMulInteger", ["a", "b", "za"], ["y"])],
        {"a": a, "b": b, "za": rows},
        {},
        (TensorProto.INT32, (12, 33)),
    )
    model.ir_version = version
    model.opset_import[0].version = 10
    (got,) = tilewright.compile(model, threads=1)(a, b, rows)
    np.testing.assert_array_equal(
        got, (a.astype(np.int32) - rows[:, None].astype(np.int32)) @ b.astype(np.int32)
    )
