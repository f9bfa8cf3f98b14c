// RUN: tilewright-opt %s --tile-form-subprograms | FileCheck %s

// A nested module is left alone: no pass after planning looks into it, and a subprogram that is never composed cannot
// be lowered.
// CHECK-LABEL: func.func @ours
// CHECK: tile.subprogram
// CHECK-LABEL: func.func @none_of_ours
// CHECK-NOT: tile.subprogram
func.func @ours(%x: tensor<7xf32>) -> tensor<7xf32> {
  %e = tensor.empty() : tensor<7xf32>
  %y = linalg.exp ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  return %y : tensor<7xf32>
}

module @inner {
  func.func @none_of_ours(%x: tensor<7xf32>) -> tensor<7xf32> {
    %e = tensor.empty() : tensor<7xf32>
    %y = linalg.exp ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>
    return %y : tensor<7xf32>
  }
}
