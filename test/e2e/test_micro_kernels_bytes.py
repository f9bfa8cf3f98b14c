"""Contractions of quantised bytes, on every micro kernel that this machine runs."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from micro_kernel_cases import TARGETS, check_ours, skip_unless_here
from one_graph import one_graph, random_bytes
from onnx import TensorProto, helper

pytestmark = pytest.mark.lands(one_in=2)

Array = np.ndarray


def _matmul_integer(
    a: Array,
    b: Array,
    target: str = "cpu",
    *,
    weight: bool,
    a_zero: Array | None = None,
    b_zero: Array | None = None,
) -> None:
    inputs, constants = {"a": a}, {}
    (constants if weight else inputs)["b"] = b
    names = ["a", "b", "", ""]
    for place, name, zero in ((2, "az", a_zero), (3, "bz", b_zero)):
        if zero is not None:
            constants[name], names[place] = zero, name
    while not names[-1]:
        names.pop()
    za, zb = (0 if zero is None else int(zero) for zero in (a_zero, b_zero))
    exact = (a.astype(np.int64) - za) @ (b.astype(np.int64) - zb)
    model = one_graph(
        [helper.make_node("MatMulInteger", names, ["y"])], inputs, constants, (TensorProto.INT32, exact.shape)
    )
    program = tilewright.compile(model, target, threads=1, tuning=False)
    check_ours(program)
    np.testing.assert_array_equal(program(*inputs.values())[0], exact.astype(np.int32))


@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(1, 1, 2), (7, 3, 65), (5, 65, 17), (131, 131, 96)],
)
def test_bytes_of_odd_sizes_are_exact(rows: int, depth: int, columns: int, *, weight: bool) -> None:
    rng = np.random.default_rng(7)
    _matmul_integer(
        random_bytes(rng, np.int8, rows, depth), random_bytes(rng, np.int8, depth, columns), weight=weight
    )


@pytest.mark.parametrize(("left", "right"), [(np.uint8, np.int8), (np.int8, np.uint8), (np.uint8, np.uint8)])
@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
def test_bytes_keep_their_signs_without_zero_points(left: type, right: type, *, weight: bool) -> None:
    rng = np.random.default_rng(9)
    _matmul_integer(random_bytes(rng, left, 5, 33), random_bytes(rng, right, 33, 18), weight=weight)


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-avx2", "x86-64-avx512bf16", TARGETS[-1]])
@pytest.mark.parametrize(("left", "right"), [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)])
def test_bytes_of_either_sign_on_every_target(target: str, left: type, right: type) -> None:
    skip_unless_here(target)
    rng = np.random.default_rng(8)
    a, b = random_bytes(rng, left, 13, 67), random_bytes(rng, right, 67, 75)
    _matmul_integer(a, b, target, weight=True, a_zero=left(100), b_zero=right(0))


@pytest.mark.parametrize(
    ("left", "right"), [((3, 9, 21), (3, 21, 70)), ((3, 9, 21), (21, 70)), ((21,), (21, 70))], ids=str
)
def test_batches_and_vectors_of_bytes(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(13)
    _matmul_integer(
        random_bytes(rng, np.uint8, *left),
        random_bytes(rng, np.int8, *right),
        weight=True,
        a_zero=np.uint8(7),
    )


def test_both_zero_points_count() -> None:
    rng = np.random.default_rng(9)
    a, b = random_bytes(rng, np.uint8, 9, 70), random_bytes(rng, np.int8, 70, 33)
    _matmul_integer(a, b, weight=True, a_zero=np.uint8(255), b_zero=np.int8(-128))


def test_largest_sums_wrap_nowhere() -> None:
    """The sum is -128 * -128, 131 times, in every lane: saturation would show."""
    a, b = np.full((7, 131), -128, np.int8), np.full((131, 70), -128, np.int8)
    _matmul_integer(a, b, weight=True)


def test_qlinear_matmul() -> None:
    rng = np.random.default_rng(10)
    a, b = random_bytes(rng, np.uint8, 13, 70), random_bytes(rng, np.int8, 70, 66)
    a_scale, b_scale, y_scale = np.float32(0.05), np.float32(0.02), np.float32(0.4)
    constants = {
        "as": a_scale, "az": np.uint8(120), "b": b, "bs": b_scale, "bz": np.int8(0), "ys": y_scale, "yz": np.uint8(128)
    }  # fmt: skip
    node = helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    constants = {name: np.asarray(value) for name, value in constants.items()}
    model = one_graph([node], {"a": a}, constants, (TensorProto.UINT8, (13, 66)))
    program = tilewright.compile(model, threads=1, tuning=False)
    check_ours(program)
    sums = (a.astype(np.int64) - 120) @ b.astype(np.int64)
    exact = sums * float(a_scale) * float(b_scale) / float(y_scale) + 128
    expected = np.clip(np.rint(exact), 0, 255)
    got = program(a)[0].astype(np.int64)
    # The scales are applied in f32, so halves may round either way.
    near_half = np.abs(np.abs(exact - np.trunc(exact)) - 0.5) < 1e-3
    assert (np.abs(got - expected) <= near_half).all()


def test_dynamic_quantisation_is_one_chain() -> None:
    """The program computes the zero point at run time."""
    rng = np.random.default_rng(11)
    x, b = rng.standard_normal((13, 70)).astype(np.float32), random_bytes(rng, np.int8, 70, 66)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "b", "z"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "s"], ["y"]),
    ]
    program = tilewright.compile(
        one_graph(nodes, {"x": x}, {"b": b}, (TensorProto.FLOAT, (13, 66))), threads=1, tuning=False
    )
    check_ours(program)
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    scale = (high - low) / 255
    zero = np.rint(-low / scale)
    quantised = np.clip(np.rint(x / scale) + zero, 0, 255)
    expected = (quantised - zero) @ b.astype(np.float64) * scale
    # A value may quantise to the neighbouring step.
    np.testing.assert_allclose(program(x)[0], expected, atol=2 * 128 * scale, rtol=1e-5)
