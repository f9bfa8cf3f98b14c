"""StableHLO as `jax.export` writes it: arguments and results keep their names."""

from __future__ import annotations

import re

import numpy as np
import tilewright

_LAYER = """
#loc1 = loc("params['w']")
#loc2 = loc("x")
module @jit_f
    attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<33x40xf32> loc("params['w']"), %arg1: tensor<5x33xf32> loc("x"))
      -> (tensor<5x40xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc12)
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc)
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0]
      : (tensor<5x33xf32>, tensor<33x40xf32>) -> tensor<5x40xf32> loc(#loc13)
    %1 = stablehlo.reduce(%0 init: %cst_0) applies stablehlo.maximum across dimensions = [1]
      : (tensor<5x40xf32>, tensor<f32>) -> tensor<5xf32> loc(#loc14)
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5xf32> loc(#loc15)
    %3 = stablehlo.maximum %2, %1 : tensor<5xf32> loc(#loc15)
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32> loc(#loc16)
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x40xf32> loc(#loc17)
    %6 = stablehlo.subtract %0, %5 : tensor<5x40xf32> loc(#loc17)
    %7 = stablehlo.exponential %6 : tensor<5x40xf32> loc(#loc18)
    %8 = stablehlo.reduce(%7 init: %cst) applies stablehlo.add across dimensions = [1]
      : (tensor<5x40xf32>, tensor<f32>) -> tensor<5xf32> loc(#loc12)
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32> loc(#loc16)
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x40xf32> loc(#loc19)
    %11 = stablehlo.divide %7, %10 : tensor<5x40xf32> loc(#loc19)
    return %11 : tensor<5x40xf32> loc(#loc11)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("layer.py":4:11 to :42)
#loc4 = loc("layer.py":6:2 to :36)
#loc5 = loc("layer.py":4:26 to :41)
#loc6 = loc("f"(#loc3))
#loc7 = loc("<module>"(#loc4))
#loc8 = loc("f"(#loc5))
#loc9 = loc(callsite(#loc6 at #loc7))
#loc10 = loc(callsite(#loc8 at #loc7))
#loc11 = loc("jit(f)"(#loc7))
#loc12 = loc("jit(f)/reduce_sum"(#loc9))
#loc13 = loc("jit(f)/dot_general"(#loc10))
#loc14 = loc("jit(f)/reduce_max"(#loc9))
#loc15 = loc("jit(f)/max"(#loc9))
#loc16 = loc("jit(f)/broadcast_in_dim"(#loc9))
#loc17 = loc("jit(f)/sub"(#loc9))
#loc18 = loc("jit(f)/exp"(#loc9))
#loc19 = loc("jit(f)/div"(#loc9))
"""
"""What JAX 0.10.2 writes for `f(params, x) = jax.nn.softmax(x @ params["w"])`."""

# Names are those of the arguments' leaves, and the program computes the function.


def test_text_of_jax_keeps_the_names_of_arguments() -> None:
    program = tilewright.compile(_LAYER, threads=1)
    assert str(program.signature) == (
        "(params['w']: float32[33x40], x: float32[5x33]) -> (result: float32[5x40])"
    )
    assert len(program.kernels) == 1
    rng = np.random.default_rng(0)
    w, x = (rng.standard_normal(shape).astype(np.float32) for shape in ((33, 40), (5, 33)))
    logits = x.astype(np.float64) @ w
    exact = np.exp(logits - logits.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    # Tolerance: the sum of 33 products of size 1 to 10 rounds to f32, and its exponential has that error relatively.
    np.testing.assert_allclose(program(w, x)[0], exact, rtol=3e-5, atol=1e-9)


# Without debug information there are no names, and inputs are numbered.


def test_text_without_names_has_numbered_inputs() -> None:
    plain = re.sub(r' loc\("[^"]*"\)(?=[,)])', "", _LAYER)
    signature = tilewright.compile(plain, threads=1).signature
    assert signature is not None
    assert [spec.name for spec in signature.inputs] == ["input0", "input1"]
    assert [spec.name for spec in signature.outputs] == ["result"]


def test_unsigned_integers_keep_their_dtype() -> None:
    """Their greatest numbers would else be negative."""
    program = tilewright.compile(
        """
func.func @main(%x: tensor<5xui8>) -> (tensor<5xui8>, tensor<5xf32>) {
  %half = stablehlo.constant dense<2> : tensor<5xui8>
  %0 = stablehlo.divide %x, %half : tensor<5xui8>
  %1 = stablehlo.convert %x : (tensor<5xui8>) -> tensor<5xf32>
  %2 = stablehlo.add %0, %x : tensor<5xui8>
  return %2, %1 : tensor<5xui8>, tensor<5xf32>
}
""",
        threads=1,
    )
    x = np.array([0, 3, 130, 170, 255], np.uint8)
    sums, floats = program(x)
    assert sums.dtype == np.uint8
    np.testing.assert_array_equal(sums, x // 2 + x)
    np.testing.assert_array_equal(floats, x.astype(np.float32))
