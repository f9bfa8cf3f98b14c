"""Tests of contractions in bf16 and in quantised bytes, on every micro kernel that this machine runs and on
user-defined ones."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import tilewright
from one_graph import one_graph, random_bytes
from onnx import TensorProto, helper
from tilewright.records.targets import unregister_micro_kernel
from tilewright.runtime.processor import missing_features

Array = np.ndarray
_BF16_STEP = 2.0**-8  # half of a unit in the last place
_TARGETS = [
    "cpu",
    "x86-64-v2",
    "x86-64-avx2",
    "x86-64-avx512",
    "x86-64-avx512bf16",
    "x86-64-avx512bf16,x86-64-avx2,x86-64-v2",
]


def _skip_unless_here(target: str) -> None:
    narrowest = target.split(",")[-1]
    if missing := missing_features(tilewright.Target.lookup(narrowest).features):
        pytest.skip(f"this machine has no {missing[0]}")


def _check_ours(program: tilewright.Program) -> None:
    left = [op.op for op in program.metadata.report.left_to_iree if "matmul" in op.op]
    assert not left, left
    assert any(op.micro_kernel for kernel in program.kernels for op in kernel.ops)


def _matmul(
    left: Array,
    right: Array,
    target: str = "cpu",
    *,
    weight: bool,
    numerics: tilewright.records.options.NumericsMode = "default",
) -> tuple[Array, tilewright.Program]:
    inputs, constants = {"a": left}, {}
    (constants if weight else inputs)["b"] = right
    shape = np.matmul(left.astype(np.float32), right.astype(np.float32)).shape
    model = one_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])], inputs, constants, (TensorProto.BFLOAT16, shape)
    )
    program = tilewright.compile(model, target, threads=1, numerics=numerics, tuning=False)
    return program(*inputs.values())[0], program


def _bf16(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


def _assert_rounded_once(got: Array, left: Array, right: Array) -> None:
    exact = left.astype(np.float64) @ right.astype(np.float64)
    terms = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64))
    error = np.abs(got.astype(np.float64) - exact)
    # The result has one rounding, and each of its terms one of f32.
    assert (error <= np.abs(exact) * _BF16_STEP + terms * left.shape[-1] * 2.0**-23 + 1e-37).all()


# ----------------------------------------------------------------------------------------------------- bf16


@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(1, 1, 2), (7, 2, 65), (5, 65, 17), (131, 193, 96)],
)
def test_bf16_of_odd_sizes(rows: int, depth: int, columns: int, *, weight: bool) -> None:
    rng = np.random.default_rng(3)
    left, right = _bf16(rng, rows, depth), _bf16(rng, depth, columns)
    got, program = _matmul(left, right, weight=weight)
    _check_ours(program)
    _assert_rounded_once(got, left, right)


@pytest.mark.parametrize("target", _TARGETS)
def test_bf16_on_every_target(target: str) -> None:
    """The first of several targets determines how weights are packed; the others must find their operands in that
    layout."""
    _skip_unless_here(target)
    rng = np.random.default_rng(4)
    left, right = _bf16(rng, 13, 67), _bf16(rng, 67, 75)
    got, program = _matmul(left, right, target, weight=True)
    _check_ours(program)
    _assert_rounded_once(got, left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 9, 21), (3, 21, 70)), ((2, 3, 9, 20), (3, 20, 70)), ((21,), (21, 70)), ((3, 9, 21), (21, 70))],
    ids=str,
)
@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
def test_bf16_batches_and_vectors(left: tuple[int, ...], right: tuple[int, ...], *, weight: bool) -> None:
    rng = np.random.default_rng(5)
    a, b = _bf16(rng, *left), _bf16(rng, *right)
    got, _ = _matmul(a, b, weight=weight)
    _assert_rounded_once(got, a, b)


def test_bf16_infinities_and_nan_stay_in_their_rows() -> None:
    """The padding of the last K step, and of the last panel's columns, is zero on both sides."""
    left, right = np.ones((9, 21), ml_dtypes.bfloat16), np.ones((21, 70), ml_dtypes.bfloat16)
    left[3, 20], left[6, 0] = np.inf, np.nan
    got, _ = _matmul(left, right, weight=True)
    assert (np.delete(got, [3, 6], axis=0) == 21).all()
    assert np.isposinf(got[3].astype(np.float32)).all()
    assert np.isnan(got[6].astype(np.float32)).all()


def test_strict_numerics_take_no_kernel_that_flushes() -> None:
    """A subnormal number times a large one is normal, but VDPBF16PS would flush it to zero."""
    left, right = np.full((3, 4), 1e-39, ml_dtypes.bfloat16), np.full((4, 33), 1e38, ml_dtypes.bfloat16)
    _, program = _matmul(left, right, weight=False, numerics="strict")
    names = [op.micro_kernel for kernel in program.kernels for op in kernel.ops if op.micro_kernel]
    assert names
    assert not any(name.startswith("dpbf16") for name in names)


def test_the_plan_names_the_kernel_of_the_target() -> None:
    rng = np.random.default_rng(6)
    left, right = _bf16(rng, 9, 20), _bf16(rng, 20, 70)
    for target, name in (("x86-64-avx512bf16", "dpbf16-6x4"), ("x86-64-avx2", "fma_pairs-6x2")):
        inputs, shape = {"a": left}, (9, 70)
        node = helper.make_node("MatMul", ["a", "b"], ["y"])
        model = one_graph([node], inputs, {"b": right}, (TensorProto.BFLOAT16, shape))
        program = tilewright.compile(model, target, threads=1, tuning=False)
        (kernel,) = program.kernels
        assert [op.micro_kernel for op in kernel.ops if op.micro_kernel] == [name]
        assert f"micro kernel {name}" in program.explain()


# ---------------------------------------------------------------------------------------------------- bytes


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
    _check_ours(program)
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


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-avx2", "x86-64-avx512bf16", _TARGETS[-1]])
@pytest.mark.parametrize(("left", "right"), [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)])
def test_bytes_of_either_sign_on_every_target(target: str, left: type, right: type) -> None:
    _skip_unless_here(target)
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
    _check_ours(program)
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
    _check_ours(program)
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    scale = (high - low) / 255
    zero = np.rint(-low / scale)
    quantised = np.clip(np.rint(x / scale) + zero, 0, 255)
    expected = (quantised - zero) @ b.astype(np.float64) * scale
    # A value may quantise to the neighbouring step.
    np.testing.assert_allclose(program(x)[0], expected, atol=2 * 128 * scale, rtol=1e-5)


# --------------------------------------------------------------------------------------------- third parties

_SQUARES = """
func.func @step(%sums: vector<8xf32>, %row: vector<8xf32>, %lanes: vector<8xf32>) -> vector<8xf32> {
  %difference = arith.subf %row, %lanes : vector<8xf32>
  %next = math.fma %difference, %difference, %sums : vector<8xf32>
  return %next : vector<8xf32>
}
"""


def test_a_kernel_from_outside_computes_what_it_says() -> None:
    """It sums squared differences instead of products, which none of our kernels does, so only this one can have
    run."""
    _skip_unless_here("x86-64-avx2")
    rng = np.random.default_rng(12)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((13, 21), (21, 70)))
    model = one_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a}, {"b": b}, (TensorProto.FLOAT, (13, 70))
    )
    kernel = tilewright.MicroKernel(
        name="squares",
        lhs="f32",
        rhs="f32",
        accumulator="f32",
        vector_bytes=32,
        body=_SQUARES,
        block_rows=4,
        block_vectors=2,
    )
    tilewright.register_micro_kernel(kernel)
    try:
        program = tilewright.compile(model, "x86-64-avx2", threads=1, tuning=False)
    finally:
        unregister_micro_kernel("squares")
    assert "micro kernel squares-4x2" in program.explain()
    expected = ((a[:, :, None].astype(np.float64) - b[None].astype(np.float64)) ** 2).sum(axis=1)
    np.testing.assert_allclose(program(a)[0], expected, rtol=1e-5)
    after = tilewright.compile(model, "x86-64-avx2", threads=1, tuning=False)
    np.testing.assert_allclose(after(a)[0], a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"body": "func.func @f("}, "body"),
        ({"body": _SQUARES.replace("8xf32", "4xf32")}, "expected a function of type"),
        (
            {"body": _SQUARES.replace("%next = math.fma", "func.call @f() : () -> () %next = math.fma")},
            "body",
        ),
        ({"depth": 3}, "depth: expected 1, 2 or 4"),
        ({"speed": math.nan}, "'k': speed: expected a positive number"),
        ({"speed": math.inf}, "'k': speed: expected a positive number"),
        ({"vector_bytes": 48}, "vectorBytes: expected 16, 32 or 64"),
        ({"name": "a b"}, "letters, digits"),
        ({"lhs": "i4"}, "'i4' is none of"),
        ({"features": ("avx2", "avx512bf")}, "has 'avx512bf'; did you mean 'avx512"),
        ({"block_rows": 4, "block_vectors": 3}, "power of two"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_kernel_that_is_none_is_refused(changed: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {
        "name": "k",
        "lhs": "f32",
        "rhs": "f32",
        "accumulator": "f32",
        "vector_bytes": 32,
    }
    kernel = tilewright.MicroKernel(**{**fields, "body": _SQUARES, **changed})  # type: ignore[arg-type]
    with pytest.raises(tilewright.TargetError, match=message):
        tilewright.register_micro_kernel(kernel)


@pytest.mark.parametrize(
    "instruction, constraints, message",
    [
        ("vfnord231ps", "=x,x,x,0", "invalid .*'vfnord231ps'"),
        ("vfmadd231ps", "=q,x,x,0", "couldn't allocate output register"),
        ("vfmadd231ps", "=x,x,x,9", "constraints '=x,x,x,9'"),
        ("vfmadd231ps", "bogus", "constraints 'bogus'"),
    ],
)
def test_bad_assembly_names_its_micro_kernel(instruction: str, constraints: str, message: str) -> None:
    body = f"""
    func.func @step(%sums: vector<8xf32>, %row: vector<8xf32>, %lanes: vector<8xf32>) -> vector<8xf32> {{
      %next = llvm.inline_asm "{instruction} $1, $2, $0", "{constraints}" %row, %lanes, %sums
          : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
      return %next : vector<8xf32>
    }}"""
    kernel = tilewright.MicroKernel(
        name="fnord", lhs="f32", rhs="f32", accumulator="f32", vector_bytes=32, body=body
    )
    a, b = np.ones((13, 21), np.float32), np.ones((21, 70), np.float32)
    model = one_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a}, {"b": b}, (TensorProto.FLOAT, (13, 70))
    )
    tilewright.register_micro_kernel(kernel)
    try:
        with pytest.raises(tilewright.PassError, match=f"micro kernel 'fnord': .*{message}"):
            tilewright.compile(model, "x86-64-avx2", threads=1, tuning=False)
    finally:
        unregister_micro_kernel("fnord")
