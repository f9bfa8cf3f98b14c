// RUN: tilewright-opt %s --tile-form-subprograms | FileCheck %s
// RUN: not tilewright-opt %s --tile-form-subprograms='plan-out=%t' 2>&1 | FileCheck %s --check-prefix=FILE

// Every function is planned, but a plan file holds the plan of a single function.
// CHECK-COUNT-2: tile.subprogram
// FILE: error: plan-in, plan-out and report take a module with one function that holds tensor expressions; this is the second
func.func @first(%x: tensor<7xf32>) -> tensor<7xf32> {
  %e = tensor.empty() : tensor<7xf32>
  %y = linalg.exp ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  return %y : tensor<7xf32>
}

func.func @second(%x: tensor<7xf32>) -> tensor<7xf32> {
  %e = tensor.empty() : tensor<7xf32>
  %y = linalg.exp ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  return %y : tensor<7xf32>
}
