// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// Each element of a running sum is the sum of the elements up to it.
// CHECK-LABEL: func @inclusive
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<3x17xf32>)
// CHECK:   %[[OWN:.*]] = linalg.index 1
// CHECK:   %[[OTHER:.*]] = linalg.index 2
// CHECK:   %[[COUNTS:.*]] = arith.cmpi sle, %[[OTHER]], %[[OWN]]
// CHECK:   arith.select %[[COUNTS]]
// CHECK:   arith.addf
func.func @inclusive(%x: tensor<3x17xf32>) -> tensor<3x17xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x17xf32>
  %f = tensor.empty() : tensor<3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%f : tensor<3xf32>) -> tensor<3xf32>
  %y:2 = "iree_linalg_ext.scan"(%x, %e, %start) <{dimension = 1 : i64, inclusive = true}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "iree_linalg_ext.yield"(%s) : (f32) -> ()
  }) : (tensor<3x17xf32>, tensor<3x17xf32>, tensor<3xf32>) -> (tensor<3x17xf32>, tensor<3xf32>)
  return %y#0 : tensor<3x17xf32>
}

// Long rows of integers are cut into blocks: the sum inside a block and the sum of the blocks before it.
// CHECK-LABEL: func @blocks
// CHECK: %[[CUT:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<4x128xi64>
// CHECK: %[[INSIDE:.*]] = linalg.generic {{.*}} ins(%[[CUT]]
// CHECK:   arith.cmpi slt
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[CUT]]
// CHECK: %[[BEFORE:.*]] = linalg.generic {{.*}} ins(%[[SUMS]]
// CHECK:   arith.cmpi slt
// CHECK: linalg.generic {{.*}} ins(%[[INSIDE]], %[[BEFORE]]
// CHECK: tensor.collapse_shape {{.*}} into tensor<512xi64>
func.func @blocks(%x: tensor<512xi64>) -> tensor<512xi64> {
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<512xi64>
  %f = tensor.empty() : tensor<i64>
  %start = linalg.fill ins(%zero : i64) outs(%f : tensor<i64>) -> tensor<i64>
  %y:2 = "iree_linalg_ext.scan"(%x, %e, %start) <{dimension = 0 : i64, inclusive = false}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.addi %a, %b : i64
    "iree_linalg_ext.yield"(%s) : (i64) -> ()
  }) : (tensor<512xi64>, tensor<512xi64>, tensor<i64>) -> (tensor<512xi64>, tensor<i64>)
  return %y#0 : tensor<512xi64>
}

// The sum of a long row of floats depends on its order, so the row is not cut.
// CHECK-LABEL: func @long_floats
// CHECK: iree_linalg_ext.scan
func.func @long_floats(%x: tensor<512xf32>) -> tensor<512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512xf32>
  %f = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%f : tensor<f32>) -> tensor<f32>
  %y:2 = "iree_linalg_ext.scan"(%x, %e, %start) <{dimension = 0 : i64, inclusive = true}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "iree_linalg_ext.yield"(%s) : (f32) -> ()
  }) : (tensor<512xf32>, tensor<512xf32>, tensor<f32>) -> (tensor<512xf32>, tensor<f32>)
  return %y#0 : tensor<512xf32>
}

// A number that is broadcast is zero everywhere, too.
// CHECK-LABEL: func @starts_from_a_broadcast
// CHECK-NOT: iree_linalg_ext.scan
// CHECK: arith.cmpi sle
func.func @starts_from_a_broadcast(%x: tensor<3x17xf32>) -> tensor<3x17xf32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %e = tensor.empty() : tensor<3x17xf32>
  %f = tensor.empty() : tensor<3xf32>
  %start = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>],
                           iterator_types = ["parallel"]} ins(%zero : tensor<f32>) outs(%f : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3xf32>
  %y:2 = "iree_linalg_ext.scan"(%x, %e, %start) <{dimension = 1 : i64, inclusive = true}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "iree_linalg_ext.yield"(%s) : (f32) -> ()
  }) : (tensor<3x17xf32>, tensor<3x17xf32>, tensor<3xf32>) -> (tensor<3x17xf32>, tensor<3xf32>)
  return %y#0 : tensor<3x17xf32>
}
