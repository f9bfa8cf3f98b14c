// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-raise))' \
// RUN:   --remarks-filter-missed=tile-raise --remark-format=emitRemark 2>&1 | FileCheck %s

// Each op that stays gets a remark with the reason, and none changes. Remarks come from the last op to the first.

// A contraction stays, and so does the fill that initialises it.
// CHECK-DAG: "left to the contraction's own compiler"
// CHECK-LABEL: func.func @matmul
// CHECK: linalg.fill
// CHECK: linalg.matmul
func.func @matmul(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %c = linalg.matmul ins(%a, %b : tensor<3x4xf32>, tensor<4x5xf32>) outs(%f : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %c : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK: linalg.exp
func.func @dynamic(%a: tensor<?xf32>) -> tensor<?xf32> {
  %x = linalg.exp ins(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return %x : tensor<?xf32>
}

// CHECK-LABEL: func.func @accumulates_onto_a_tensor
// CHECK: linalg.reduce
func.func @accumulates_onto_a_tensor(%a: tensor<3x5xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %m = linalg.reduce { arith.addf } ins(%a : tensor<3x5xf32>) outs(%b : tensor<3xf32>) dimensions = [1]
  return %m : tensor<3xf32>
}

// CHECK-LABEL: func.func @computed_scalar
// CHECK: linalg.generic
// CHECK: "some.op"
func.func @computed_scalar(%a: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %y = "some.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
