// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 policy=unfused' | FileCheck %s --check-prefix=UNFUSED
// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 policy=exhaustive' | FileCheck %s --check-prefix=EXHAUSTIVE

// Policies decide how many kernels these three ops become.
// UNFUSED-COUNT-3: tile.subprogram
// UNFUSED-NOT: tile.subprogram
// EXHAUSTIVE-COUNT-1: tile.subprogram
// EXHAUSTIVE-NOT: tile.subprogram
func.func @squares_of_sums(%x: tensor<37x53xf32>) -> tensor<37xf32> {
  %zero = arith.constant dense<0.0> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x53xf32>
  %f = tensor.empty() : tensor<37xf32>
  %y = linalg.exp ins(%x : tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  %s = linalg.reduce { arith.addf } ins(%y : tensor<37x53xf32>) outs(%zero : tensor<37xf32>) dimensions = [1]
  %q = linalg.square ins(%s : tensor<37xf32>) outs(%f : tensor<37xf32>) -> tensor<37xf32>
  return %q : tensor<37xf32>
}
