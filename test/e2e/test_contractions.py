"""Tests of contractions in our kernels with every shape, layout and neighbour, against float64."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
import tilewright
from compiled import runs_here
from onnx import TensorProto
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads.builder import GraphBuilder, gelu_erf

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

Shape = tuple[int, ...]
_LAYER_NORM_EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True)
class Product:
    """A model of left @ right; `right` may be a weight, and the two innermost dims of either may be transposed."""

    left: Shape
    right: Shape
    weight: bool = False
    transpose_left: bool = False
    transpose_right: bool = False

    def build(self, *, then: str = "") -> onnx.ModelProto:
        g = GraphBuilder("product")
        left = g.input("left", self.left)
        right = g.weight(self.right, fan_in=1) if self.weight else g.input("right", self.right)
        x = g.op("Transpose", left, perm=_swapped(len(self.left))) if self.transpose_left else left
        y = g.op("Transpose", right, perm=_swapped(len(self.right))) if self.transpose_right else right
        shape = np.matmul(*self._reference_shapes()).shape
        result = _following(g, g.op("MatMul", x, y), then, shape)
        g.output(result, shape)
        return g.build()

    def _reference_shapes(self) -> tuple[np.ndarray, np.ndarray]:
        left, right = np.empty(self.left), np.empty(self.right)
        return (
            left.swapaxes(-1, -2) if self.transpose_left else left,
            right.swapaxes(-1, -2) if self.transpose_right else right,
        )


def _swapped(rank: int) -> list[int]:
    return [*range(rank - 2), rank - 1, rank - 2]


def _following(g: GraphBuilder, x: str, then: str, shape: Shape) -> str:
    if then == "gelu":
        bias = g.vector(shape[-1])
        return gelu_erf(g, g.op("Add", x, bias))
    if then == "norm":
        residual = g.input("residual", shape)
        x = g.op("Add", x, residual)
        scale, shift = g.vector(shape[-1], mean=1.0), g.vector(shape[-1])
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=_LAYER_NORM_EPSILON)
    if then == "softmax":
        return g.op("Softmax", x, axis=-1)
    return x


# The rows lie around the register block (6), the columns around its lanes (16 and 64); there are single points, and
# sizes that tiles do not divide.
_SIZES = [
    (1, 1, 1),
    (1, 64, 7),
    (5, 3, 17),
    (6, 64, 64),
    (7, 65, 63),
    (12, 1, 128),
    (13, 130, 200),
    (131, 70, 96),
]


def _check(
    product: Product, *, then: str = "", threads: int = 2, ours: bool = True, target: str = "cpu"
) -> tilewright.Program:

    model = product.build(then=then)
    program = tilewright.compile(model, target, threads=[threads])
    if ours:
        left = [op.op for op in program.metadata.report.left_to_iree if "matmul" in op.op]
        assert not left, left
    rng = np.random.default_rng(7)
    inputs = [rng.standard_normal(spec.shape).astype(np.float32) for spec in program.signature.inputs]
    (got,) = program(*inputs)
    (expected,) = float64_reference(model, inputs)
    depth = product.left[-2 if product.transpose_left else -1]
    # Each element sums `depth` terms around one, with one rounding each; the total error grows with the square root of
    # their number.
    bound = 1e-6 * max(1.0, np.sqrt(depth)) * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=bound)
    return program


@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
@pytest.mark.parametrize(("rows", "depth", "columns"), _SIZES)
def test_matmul(rows: int, depth: int, columns: int, *, weight: bool) -> None:
    _check(Product(left=(rows, depth), right=(depth, columns), weight=weight), ours=columns > 1)


@pytest.mark.parametrize("then", ["gelu", "norm", "softmax"])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 64, 70), (7, 65, 63), (131, 70, 200)])
def test_what_follows_is_in_the_kernel(rows: int, depth: int, columns: int, then: str) -> None:
    program = _check(Product(left=(rows, depth), right=(depth, columns), weight=True), then=then, threads=1)
    assert len(program.kernels) == 1


@pytest.mark.parametrize(
    "product",
    [
        Product(left=(3, 9, 20), right=(3, 20, 70)),
        Product(left=(3, 9, 20), right=(20, 70), weight=True),
        Product(left=(2, 3, 9, 20), right=(3, 20, 70)),
        Product(left=(2, 1, 9, 20), right=(1, 3, 20, 18)),
        Product(left=(20, 31), right=(20, 70), weight=True, transpose_left=True),
        Product(left=(31, 20), right=(70, 20), weight=True, transpose_right=True),
        Product(left=(4, 31, 64), right=(4, 70, 64), transpose_right=True),
        Product(left=(20,), right=(20, 70), weight=True),
    ],
    ids=str,
)
def test_batches_and_transposes(product: Product) -> None:
    _check(product, ours=product.weight or not product.transpose_right)


# The operands exceed the caches of a core, their sizes leave remainders, and the following op is in the same kernel.
@pytest.mark.parametrize("then", ["", "softmax"])
@pytest.mark.parametrize("rows", [1, 4, 6])
def test_few_rows_stream_a_given_matrix(cpu_target: str, rows: int, then: str) -> None:
    program = _check(Product(left=(rows, 1019), right=(1019, 1100)), then=then, threads=1)
    is_wide = cpu_target == "x86-64-avx512" or (cpu_target == "cpu" and runs_here("x86-64-avx512"))
    label = "fma-6x4x8" if is_wide else r"fma-\d+x\d+x8"
    assert re.search(rf"{label}\b", program.explain())


_HEADS_INNERMOST = """
func.func @main(%a: tensor<2x19x3x40xf32>, %b: tensor<2x33x3x40xf32>) -> tensor<2x19x33x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x19x33x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x19x33x3xf32>) -> tensor<2x19x33x3xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, i, j, h, k) -> (b, i, h, k)>, affine_map<(b, i, j, h, k) -> (b, j, h, k)>,
                       affine_map<(b, i, j, h, k) -> (b, i, j, h)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<2x19x3x40xf32>, tensor<2x33x3x40xf32>) outs(%start : tensor<2x19x33x3xf32>) {
  ^bb0(%u: f32, %v: f32, %s: f32):
    %p = arith.mulf %u, %v : f32
    %n = arith.addf %s, %p : f32
    linalg.yield %n : f32
  } -> tensor<2x19x33x3xf32>
  return %y : tensor<2x19x33x3xf32>
}
"""


def test_a_batch_dim_innermost_fills_no_lanes() -> None:
    program = tilewright.compile(_HEADS_INNERMOST, threads=1)
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal((2, rows, 3, 40)).astype(np.float32) for rows in (19, 33))
    expected = np.einsum("bihk,bjhk->bijh", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(program(a, b)[0], expected, rtol=1e-5, atol=1e-5)
    assert len(program.kernels) == 1
    assert "micro kernel" in program.explain()


@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (33, 3)])
def test_few_columns(rows: int, columns: int, *, weight: bool) -> None:
    program = _check(
        Product(left=(rows, 131), right=(131, columns), weight=weight), then="softmax", ours=False, threads=1
    )
    # A kernel of its own may transpose the columns.
    assert sum(not kernel.name.startswith("move") for kernel in program.kernels) == 1
    assert "micro kernel" not in program.explain()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_tiles(threads: int) -> None:
    _check(Product(left=(77, 96), right=(96, 330), weight=True), then="gelu", threads=threads)


@pytest.mark.cpu_levels("cpu")
def test_variants_find_their_blocks_in_the_weights_of_the_widest() -> None:
    """The first of several targets determines how weights are packed."""
    _check(
        Product(left=(13, 65), right=(65, 75), weight=True),
        then="norm",
        target="x86-64-avx512,x86-64-avx2,x86-64-v2",
    )


def test_infinities_and_nan_go_where_they_must() -> None:
    """An infinite factor times zero gives NaN in its row alone; the padding of packed weights adds none."""
    g = GraphBuilder("product")
    x = g.input("x", (9, 20))
    g.output(g.op("MatMul", x, g.weight((20, 70), fan_in=1)), (9, 70))
    program = tilewright.compile(g.build())
    x_value = np.ones((9, 20), np.float32)
    x_value[3, 5], x_value[6, 0] = np.inf, np.nan
    (y,) = program(x_value)
    assert np.isfinite(np.delete(y, [3, 6], axis=0)).all()
    assert not np.isfinite(y[3]).any()
    assert np.isnan(y[6]).all()


def test_reading_an_input_twice() -> None:
    """The models are x @ x, and a contraction whose result another contraction of the same kernel may read."""
    g = GraphBuilder("square")
    x = g.input("x", (40, 40))
    square = g.op("MatMul", x, x)
    g.output(g.op("MatMul", square, x), (40, 40))
    program = tilewright.compile(g.build())
    value = np.random.default_rng(1).standard_normal((40, 40)).astype(np.float32) / 6
    wide = value.astype(np.float64)
    np.testing.assert_allclose(program(value)[0], wide @ wide @ wide, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [TensorProto.BFLOAT16, TensorProto.FLOAT16], ids=["bf16", "f16"])
@pytest.mark.parametrize("weight", [True, False], ids=["weight", "input"])
def test_narrow_types_accumulate_in_f32(dtype: int, *, weight: bool) -> None:
    """The error is within one rounding of the stored result, whatever the depth."""
    rows, depth, columns = 13, 700, 75
    narrow = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    rng = np.random.default_rng(5)
    left, right = (rng.standard_normal(shape).astype(narrow) for shape in ((rows, depth), (depth, columns)))
    g = GraphBuilder("narrow")
    x = g.input("x", (rows, depth), dtype)
    y = g.constant(right) if weight else g.input("y", (depth, columns), dtype)
    g.output(g.op("MatMul", x, y), (rows, columns), dtype)
    program = tilewright.compile(g.build())
    assert not [op for op in program.metadata.report.left_to_iree if "matmul" in op.op]
    (got,) = program(left, *([] if weight else [right]))
    exact = left.astype(np.float64) @ right.astype(np.float64)
    step = 2.0 ** -np.finfo(np.float16).nmant if dtype == TensorProto.FLOAT16 else 2.0**-7
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=step / 2 + 1e-4, atol=1e-4)


@pytest.mark.cpu_levels("cpu")
def test_explain_names_the_micro_kernel() -> None:
    program = tilewright.compile(Product(left=(9, 20), right=(20, 70), weight=True).build(), "x86-64-avx512")
    (kernel,) = program.kernels
    assert [op.micro_kernel for op in kernel.ops if op.micro_kernel] == ["fma-6x4"]
    assert ", micro kernel fma-6x4" in program.explain()


@pytest.mark.parametrize("then", ["", "gelu", "softmax"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((4, 0), (0, 5)), ((2, 4, 0), (2, 0, 5)), ((0, 4), (4, 5)), ((1, 1), (1, 2))],
    ids=str,
)
def test_dims_of_zero_and_one(left: Shape, right: Shape, then: str) -> None:
    """An empty sum is zero, and the following op reads it."""
    model = Product(left=left, right=right).build(then=then)
    program = tilewright.compile(model)
    inputs = [np.ones(spec.shape, np.float32) for spec in program.signature.inputs]
    (got,) = program(*inputs)
    (expected,) = float64_reference(model, inputs)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_sizes_that_overflow_are_refused() -> None:
    """IREE counts the elements in 64 bits, so it would treat the matmul as empty."""
    side = 2**40
    matrix = f"tensor<{side}x{side}xf32>"
    text = f"""
      func.func @main(%a: {matrix}, %b: {matrix}, %c: {matrix}) -> {matrix} {{
        %y = linalg.matmul ins(%a, %b : {matrix}, {matrix}) outs(%c : {matrix}) -> {matrix}
        return %y : {matrix}
      }}"""
    with pytest.raises(tilewright.ModelError, match="more elements than can be addressed"):
        tilewright.compile(text, threads=1, tuning=False)
