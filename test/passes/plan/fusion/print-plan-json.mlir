// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=x86-64-avx512 json=true}))' -o %t.mlir \
// RUN:   | FileCheck %s

// A module of one model is one JSON document: the function that only calls the model prints no plan of its own.
// CHECK-COUNT-1: "policy":
// CHECK-NOT: "policy":
func.func @model(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %e = tensor.empty() : tensor<3x5xf32>
  %sum = linalg.add ins(%x, %x : tensor<3x5xf32>, tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %sum : tensor<3x5xf32>
}

func.func @wrapper(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %sum = call @model(%x) : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return %sum : tensor<3x5xf32>
}
