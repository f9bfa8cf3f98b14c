"""`tilewright.compile` of MLIR text: linalg, torch and StableHLO."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tilewright


def test_takes_mlir_text() -> None:
    program = tilewright.compile(
        """
        func.func @scale(%x: tensor<?x5xf32>, %factor: f32) -> (tensor<?x5xf32>, f32) {
          %c0 = arith.constant 0 : index
          %n = tensor.dim %x, %c0 : tensor<?x5xf32>
          %empty = tensor.empty(%n) : tensor<?x5xf32>
          %f = linalg.fill ins(%factor : f32) outs(%empty : tensor<?x5xf32>) -> tensor<?x5xf32>
          %y = arith.mulf %x, %f : tensor<?x5xf32>
          return %y, %factor : tensor<?x5xf32>, f32
        }""",
        threads=1,
    )
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    y, factor = program(x, 2.0)
    np.testing.assert_array_equal(y, 2 * x)
    assert factor == 2.0


def test_takes_torch_text_whose_module_does_not_declare_its_types() -> None:
    program = tilewright.compile(
        """
        func.func @relu(%x: !torch.vtensor<[2,?],f32>) -> !torch.vtensor<[2,?],f32> {
          %y = torch.aten.relu %x : !torch.vtensor<[2,?],f32> -> !torch.vtensor<[2,?],f32>
          return %y : !torch.vtensor<[2,?],f32>
        }""",
        threads=1,
    )
    assert str(program.signature) == "(input0: float32[2x?]) -> (output0: float32[2x?])"
    x = np.array([[-1, 2, 3], [4, -5, 6]], dtype=np.float32)
    np.testing.assert_array_equal(program(x)[0], np.maximum(x, 0))


def test_takes_stablehlo_text() -> None:
    program = tilewright.compile(
        """
        func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
          %y = stablehlo.add %x, %x : tensor<3xf32>
          return %y : tensor<3xf32>
        }""",
        threads=1,
    )
    np.testing.assert_array_equal(program(np.ones(3, np.float32))[0], 2 * np.ones(3))


def test_constants_kept_as_resources_keep_their_values() -> None:
    program = tilewright.compile(
        """
        module {
          func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
            %c = arith.constant dense_resource<blob> : tensor<4xf32>
            %y = arith.addf %x, %c : tensor<4xf32>
            return %y : tensor<4xf32>
          }
        }
        {-# dialect_resources: { builtin: { blob: "0x040000000000803F000000400000404000008040" } } #-}
        """,
        threads=1,
    )
    assert program.runtime == "direct"
    np.testing.assert_array_equal(program(np.zeros(4, np.float32))[0], [1, 2, 3, 4])


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_gelu_by_tanh_of_torch_has_its_constant(element: str) -> None:
    """IREE 3.13 has only four digits of the constant, an error of 5e-5."""
    kind = f"!torch.vtensor<[64],{element}>"
    source = f"""
        func.func @gelu(%x: {kind}) -> {kind} {{
          %form = torch.constant.str "tanh"
          %y = torch.aten.gelu %x, %form : {kind}, !torch.str -> {kind}
          return %y : {kind}
        }}"""
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    x = np.random.default_rng().uniform(-4, 4, 64).astype(dtype)
    (y,) = tilewright.compile(source, threads=1)(x)
    wide = x.astype(np.float64)
    expected = wide / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    # Tolerance: the rounding of the result, or of f32 intermediates
    tolerance = {"f32": 2e-6, "f16": 2**-11, "bf16": 2**-8}[element]
    assert np.all(np.abs(y.astype(np.float64) - expected) <= tolerance * np.abs(expected) + 2e-6)
